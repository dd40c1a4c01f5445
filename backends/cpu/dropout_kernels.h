#pragma once
// Dropout, its mask drawn where it is used.
#include "backends/cpu/dropout_args.h"
#include "backends/cpu/philox.h"
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

inline void dropout(const DropoutRow& a) {
  constexpr int64_t kWords = 1024;  // drawn at a time
  uint32_t drawn[kWords + 2 * kPhiloxWords];
  const uint32_t threshold = static_cast<uint32_t>(a.threshold);
  const bool none = a.threshold >> 32 != 0;  // no word is so large
  for (int64_t begin = 0; begin < a.n; begin += kWords) {
    const int64_t n = a.n - begin < kWords ? a.n - begin : kWords;
    const uint32_t* words =
        philox_stretch(a.seed, a.stream, a.first + static_cast<uint64_t>(begin), n, drawn);
    each_vector(n, [&](int64_t i, auto lanes) {
      U32 w;
      __builtin_memcpy(&w, words + i, sizeof w);
      const I32 kept = none ? I32{} : w >= threshold;
      const int64_t at = begin + i;
      F32 v = select(kept, load_some(a.x + at, lanes) * a.factor, F32{});
      if (a.residual != nullptr) v = load_some(a.residual + at, lanes) + v;
      put(a.y + at, v, lanes, a.add);
    });
  }
}

}  // namespace
}  // namespace tally::cpu
