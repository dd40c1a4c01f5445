#pragma once
// Rows of logits for the cross entropies; the formulas are core/ops/loss_row.h's.
#include "backends/cpu/loss_args.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

[[gnu::always_inline]] inline F32 only(F32 v, F32, All) { return v; }
[[gnu::always_inline]] inline F32 only(F32 v, F32 others, int64_t n) {
  return select(iota() < static_cast<int32_t>(n), v, others);
}

/// The maximum of the logits, the sum of their exp with it taken out, and the sum of themselves.
template <bool Capped>
inline LossSums row_sums(int64_t n, const float* x, float cap) {
  const F32 nothing = broadcast(-__builtin_inff());
  F32 tops = nothing;
  each_vector(n, [&](int64_t i, auto lanes) {
    tops = max(tops, only(load_some(x + i, lanes), nothing, lanes));
  });
  const auto bent = [&](F32 v) { return Capped ? cap * tanh(v / cap) : v; };
  const float top = bent(broadcast(max_lane(tops)))[0];  // the cap is monotonous
  F32 exps{}, all{};
  each_vector(n, [&](int64_t i, auto lanes) {
    const F32 u = bent(load_some(x + i, lanes));
    exps += only(exp(u - top), F32{}, lanes);
    all += only(u, F32{}, lanes);
  });
  return {top, sum(exps), sum(all)};
}
inline LossSums loss_sums(int64_t n, const float* x, float cap) {
  return cap > 0 ? row_sums<true>(n, x, cap) : row_sums<false>(n, x, cap);
}

/// The first of the largest logits; 0 where all are NaN.
inline int64_t loss_largest(int64_t n, const float* x) {
  const F32 nothing = broadcast(-__builtin_inff());
  F32 tops = nothing;
  each_vector(n, [&](int64_t i, auto lanes) {
    tops = max(only(load_some(x + i, lanes), nothing, lanes), tops);  // a NaN is lost
  });
  const float top = max_lane(tops);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == top) return i;
  }
  return 0;
}

/// dx = or += (factor exp(u - log_z) - rest) slope, u being the capped logit; dx may be x.
template <bool Capped>
inline void row_gradient(const LossGradient& a) {
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 bend = Capped ? tanh(load_some(a.x + i, lanes) / a.cap) : F32{};
    const F32 u = Capped ? a.cap * bend : load_some(a.x + i, lanes);
    F32 d = a.factor * exp(u - a.log_z) - a.rest;
    if (Capped) d *= 1.0f - bend * bend;
    put(a.dx + i, d, lanes, a.add);
  });
}
inline void loss_gradient(const LossGradient& a) {
  if (a.cap > 0)
    row_gradient<true>(a);
  else
    row_gradient<false>(a);
}

}  // namespace
}  // namespace tally::cpu
