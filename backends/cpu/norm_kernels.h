#pragma once
// RMSNorm and LayerNorm, row by row: x is read twice forward (three times with a mean), the second
// time from the first-level cache; dy and x are read twice backward.
#include "backends/cpu/norm_args.h"
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

struct Gain {
  const float* w;
  float offset;
  template <class Lanes>
  [[gnu::always_inline]] F32 at(int64_t i, Lanes lanes) const {
    return w ? load_some(w + i, lanes) + offset : broadcast(1.0f);
  }
};

/// The sum of squares of x - mean. Lanes beyond the row hold 0 - mean: they are masked away.
inline float square_sum(const float* x, int64_t n, float mean) {
  F32 sum_of{};
  each_vector(n, [&](int64_t i, auto lanes) {
    F32 c = load_some(x + i, lanes) - mean;
    if constexpr (sizeof(lanes) == sizeof(int64_t))
      c = select(iota() < static_cast<int32_t>(lanes), c, F32{});
    sum_of = fma(c, c, sum_of);
  });
  return sum(sum_of);
}

inline float row_sum(const float* x, int64_t n) {
  F32 total{};
  each_vector(n, [&](int64_t i, auto lanes) { total += load_some(x + i, lanes); });
  return sum(total);
}

inline void norm_forward(const NormForward& a) {
  const Gain gain{a.w, a.gain_offset};
  for (int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.x_stride;
    float* y = a.y + row * a.y_stride;
    const float n = static_cast<float>(a.cols), mean = a.mean ? row_sum(x, a.cols) / n : 0.0f;
    const float r = 1.0f / __builtin_sqrtf(square_sum(x, a.cols, mean) / n + a.eps);
    each_vector(a.cols, [&](int64_t i, auto lanes) {
      F32 v = (load_some(x + i, lanes) - mean) * r * gain.at(i, lanes);
      if (a.b) v += load_some(a.b + i, lanes);
      put(y + i, v, lanes, a.add);
    });
    if (a.mean) a.mean[row] = mean;
    a.r[row] = r;
  }
}

inline void norm_backward(const NormBackward& a) {
  const Gain gain{a.w, a.gain_offset};
  for (int64_t row = 0; row < a.rows; ++row) {
    const float *dy = a.dy + row * a.dy_stride, *x = a.x + row * a.x_stride;
    const float mean = a.mean ? a.mean[row] : 0.0f, r = a.r ? a.r[row] : 0.0f;
    F32 g_sum{}, gn_sum{};
    each_vector(a.cols, [&](int64_t i, auto lanes) {
      const F32 d = load_some(dy + i, lanes);
      const F32 n = (load_some(x + i, lanes) - mean) * r, g = d * gain.at(i, lanes);
      g_sum += g;
      gn_sum = fma(g, n, gn_sum);  // lanes beyond the row hold g = 0
      if (a.dw) store_some(a.dw + i, fma(d, n, load_some(a.dw + i, lanes)), lanes);
      if (a.db) store_some(a.db + i, load_some(a.db + i, lanes) + d, lanes);
    });
    if (!a.dx) continue;
    const float cols = static_cast<float>(a.cols);
    const float g_mean = a.mean ? sum(g_sum) / cols : 0.0f, gn_mean = sum(gn_sum) / cols;
    float* dx = a.dx + row * a.dx_stride;
    each_vector(a.cols, [&](int64_t i, auto lanes) {
      const F32 n = (load_some(x + i, lanes) - mean) * r,
                g = load_some(dy + i, lanes) * gain.at(i, lanes);
      put(dx + i, r * (g - g_mean - n * gn_mean), lanes, a.add);
    });
  }
}

/// out[j] (+)= the sum over rows of x[row, j], rows in order: 64 columns at a time stay in
/// registers.
inline void column_sums(int64_t rows, int64_t cols, const float* x, int64_t stride, float* out,
                        bool add) {
  each_vector(cols, [&](int64_t i, auto lanes) {
    F32 total = add ? load_some(out + i, lanes) : F32{};
    for (int64_t row = 0; row < rows; ++row) total += load_some(x + row * stride + i, lanes);
    store_some(out + i, total, lanes);
  });
}

}  // namespace
}  // namespace tally::cpu
