#pragma once
// The AdamW step in one pass: 16 bytes of a parameter are read and 12 written.
#include "backends/cpu/optimizer_args.h"
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

inline void adamw(int64_t n, const float* dw, float* w, float* m, float* v, const AdamWScalars& s) {
  each_vector(n, [&](int64_t i, auto lanes) {
    const F32 g = load_some(dw + i, lanes) * s.gradient_scale, m0 = load_some(m + i, lanes);
    const F32 first = fma(g - m0, broadcast(s.rate1), m0);
    const F32 second = fma(g * s.rate2, g, load_some(v + i, lanes) * s.beta2);
    const F32 size = sqrt(second) / s.root_correction + s.eps;
    store_some(m + i, first, lanes);
    store_some(v + i, second, lanes);
    store_some(w + i, load_some(w + i, lanes) * s.keep - s.step_size * (first / size), lanes);
  });
}

/// The sum of squares, in double.
inline double square_sum_f64(int64_t n, const float* x) {
  F64 low{}, high{};
  each_vector(n, [&](int64_t i, auto lanes) {
    float buffer[kLanes];
    store(buffer, load_some(x + i, lanes));
    F64 a, b;
    for (int k = 0; k < kLanes64; ++k)
      a[k] = static_cast<double>(buffer[k]), b[k] = static_cast<double>(buffer[k + kLanes64]);
    low = fma(a, a, low);
    high = fma(b, b, high);
  });
  low += high;
  double total = 0;
  for (int k = 0; k < kLanes64; ++k) total += low[k];
  return total;
}

}  // namespace
}  // namespace tally::cpu
