#pragma once
// Numbers that are kept in bf16: read into vectors of f32, where all arithmetic happens, and rounded
// once when they are written.
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

[[gnu::always_inline]] inline F32 load_some(const uint16_t* p, All) { return load_bf16(p); }
[[gnu::always_inline]] inline F32 load_some(const uint16_t* p, int64_t n) {
  uint16_t lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, static_cast<size_t>(n) * sizeof(uint16_t));
  return load_bf16(lanes);
}

/// y[i] = x[i].
inline void widen(int64_t n, const uint16_t* x, float* y) {
  each_vector(n, [&](int64_t i, auto lanes) { store_some(y + i, load_some(x + i, lanes), lanes); });
}

/// y[i] (+)= x[i], rounded.
inline void narrow(int64_t n, const float* x, uint16_t* y, bool add) {
  each_vector(n, [&](int64_t i, auto lanes) {
    const F32 v = add ? load_some(y + i, lanes) + load_some(x + i, lanes) : load_some(x + i, lanes);
    uint16_t rounded[kLanes];
    store_bf16(rounded, v);
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    __builtin_memcpy(y + i, rounded, static_cast<size_t>(count) * sizeof(uint16_t));
  });
}

}  // namespace
}  // namespace tally::cpu
