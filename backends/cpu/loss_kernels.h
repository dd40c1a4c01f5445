#pragma once
// Rows of logits for the cross entropies, and of heads for rope.
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

inline float row_max(int64_t n, const float* x) {
  F32 top = broadcast(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) top = max(load(x + i), top);
  float result = max_lane(top);
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

/// The sum of exp(x - top).
inline float exp_sum(int64_t n, const float* x, float top) {
  F32 total{};
  each_vector(n, [&](int64_t i, auto lanes) {
    F32 e = exp(load_some(x + i, lanes) - top);
    if constexpr (sizeof(lanes) == sizeof(int64_t)) e = select(iota() < static_cast<int32_t>(lanes), e, F32{});
    total += e;
  });
  return sum(total);
}

/// x = factor exp(x - log_z)
inline void scaled_softmax(int64_t n, float* x, float log_z, float factor) {
  each_vector(n, [&](int64_t i, auto lanes) { store_some(x + i, factor * exp(load_some(x + i, lanes) - log_z), lanes); });
}

/// Turns the pairs (i, half + i) of a head; y may be x. `sign` is -1 for the way back.
inline void turn_halves(int64_t half, const float* x, const float* cos_sin, float sign, float* y, bool add_to) {
  each_vector(half, [&](int64_t i, auto lanes) {
    const F32 c = load_some(cos_sin + i, lanes), s = load_some(cos_sin + half + i, lanes) * sign;
    const F32 a = load_some(x + i, lanes), b = load_some(x + half + i, lanes);
    put(y + i, a * c - b * s, lanes, add_to);
    put(y + half + i, b * c + a * s, lanes, add_to);
  });
}

}  // namespace
}  // namespace tally::cpu
