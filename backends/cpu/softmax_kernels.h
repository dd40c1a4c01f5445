#pragma once
// A row of softmax: x is read twice, the second time from the first-level cache, and y once more to
// divide it by the sum.
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"
#include "backends/cpu/softmax_args.h"

namespace tally::cpu {
namespace {

using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;

/// Lanes of the row that the mask allows; those beyond its end are not.
[[gnu::always_inline]] inline I32 allowed(const uint8_t* mask, int64_t i, int64_t n) {
  const I32 inside = iota() < static_cast<int32_t>(n);
  if (!mask) return inside;
  Bytes b{};
  __builtin_memcpy(&b, mask + i, static_cast<size_t>(n));
  return inside & (__builtin_convertvector(b, I32) != 0);
}
[[gnu::always_inline]] inline I32 allowed(const uint8_t* mask, int64_t i, All) {
  if (!mask) return iota() >= 0;
  Bytes b;
  __builtin_memcpy(&b, mask + i, sizeof b);
  return __builtin_convertvector(b, I32) != 0;
}

/// What is taken out of a row before exp: its largest element, or 0 where nothing is allowed.
template <bool Masked>
[[gnu::always_inline]] inline float softmax_shift(const SoftmaxForward& a, bool& any) {
  const F32 nothing = broadcast(-__builtin_inff());
  const uint8_t* mask = Masked ? a.mask : nullptr;
  F32 tops = nothing;
  I32 seen{};
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const I32 in = allowed(mask, i, lanes);
    tops = max(tops, select(in, load_some(a.x + i, lanes) * a.scale, nothing));
    seen |= in;
  });
  any = max_lane(select(seen, broadcast(1.0f), F32{})) > 0;
  const float top = max_lane(tops);
  if (!any) return 0;
  return a.rest != nullptr && a.sink > top ? a.sink : top;
}

template <bool Masked>
inline void softmax_row(const SoftmaxForward& a) {
  bool any = false;
  const float shift = softmax_shift<Masked>(a, any);
  const uint8_t* mask = Masked ? a.mask : nullptr;
  const auto power = [&](int64_t i, auto lanes) {
    const F32 e = exp(load_some(a.x + i, lanes) * a.scale - shift);
    return select(allowed(mask, i, lanes), e, F32{});
  };
  F32 sums{};
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 e = power(i, lanes);
    if (!a.add) store_some(a.y + i, e, lanes);
    sums += e;
  });
  float total = any ? sum(sums) : 0;
  if (a.rest != nullptr) {
    const float own = any ? exp(broadcast(a.sink - shift))[0] : 1;
    total += own;
    *a.rest = own / total;
  }
  const float share = any ? 1.0f / total : 0.0f;
  each_vector(a.n, [&](int64_t i, auto lanes) {
    put(a.y + i, (a.add ? power(i, lanes) : load_some(a.y + i, lanes)) * share, lanes, a.add);
  });
}

template <bool Masked>
inline void log_softmax_row(const SoftmaxForward& a) {
  bool any = false;
  const float shift = softmax_shift<Masked>(a, any);
  const uint8_t* mask = Masked ? a.mask : nullptr;
  F32 sums{};
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 e = exp(load_some(a.x + i, lanes) * a.scale - shift);
    sums += select(allowed(mask, i, lanes), e, F32{});
  });
  const float log_sum = log(broadcast(any ? sum(sums) : 1.0f))[0];
  const F32 forbidden = broadcast(-__builtin_inff());
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 v = load_some(a.x + i, lanes) * a.scale - shift - log_sum;
    put(a.y + i, select(allowed(mask, i, lanes), v, forbidden), lanes, a.add);
  });
}

inline void softmax_forward(const SoftmaxForward& a) {
  if (a.log)
    a.mask ? log_softmax_row<true>(a) : log_softmax_row<false>(a);
  else
    a.mask ? softmax_row<true>(a) : softmax_row<false>(a);
}

template <bool Log>
inline void softmax_gradient(const SoftmaxBackward& a) {
  F32 sums{};
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 d = load_some(a.dy + i, lanes);
    if constexpr (Log)
      sums += select(allowed(a.mask, i, lanes), d, F32{});
    else
      sums = fma(d, load_some(a.y + i, lanes), sums);
  });
  const float total = sum(sums);
  if (a.dot != nullptr) *a.dot = total;
  if (a.dx == nullptr) return;
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 d = load_some(a.dy + i, lanes), y = load_some(a.y + i, lanes);
    F32 g = (Log ? d - exp(y) * total : y * (d - total)) * a.scale;
    if constexpr (Log) g = select(allowed(a.mask, i, lanes), g, F32{});
    put(a.dx + i, g, lanes, a.add);
  });
}

inline void softmax_backward(const SoftmaxBackward& a) {
  if (a.log)
    softmax_gradient<true>(a);
  else
    softmax_gradient<false>(a);
}

}  // namespace
}  // namespace tally::cpu
