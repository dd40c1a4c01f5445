#pragma once
// The functions of simd_math.h over arrays: what the tests measure, and the smallest example of a
// kernel.
#include "backends/cpu/isa.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

/// y[i] = f(x[i]). The tail takes the same vector instructions as the rest.
template <class F>
[[gnu::always_inline]] inline void map_with(int64_t n, const float* x, float* y, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i < n) store_first(y + i, f(load_first(x + i, n - i)), n - i);
}

inline void map(MathFunction f, int64_t n, const float* x, float* y) {
  switch (f) {
    case MathFunction::exp:
      return map_with(n, x, y, [](F32 v) { return exp(v); });
    case MathFunction::log:
      return map_with(n, x, y, [](F32 v) { return log(v); });
    case MathFunction::tanh:
      return map_with(n, x, y, [](F32 v) { return tanh(v); });
    case MathFunction::erf:
      return map_with(n, x, y, [](F32 v) { return erf(v); });
    case MathFunction::normal_cdf:
      return map_with(n, x, y, [](F32 v) { return normal_cdf(v); });
    case MathFunction::sigmoid:
      return map_with(n, x, y, [](F32 v) { return sigmoid(v); });
    case MathFunction::silu:
      return map_with(n, x, y, [](F32 v) { return silu(v); });
  }
}

}  // namespace
}  // namespace tally::cpu
