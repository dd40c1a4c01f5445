#pragma once
// Activations with parameters, given or learned; core/ops/activation_functions.h says why each is
// written as it is.
#include "backends/cpu/curve_args.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

struct Pair {
  F32 value, slope;
};
[[gnu::always_inline]] inline F32 clamped(F32 x, float low, float high) {
  return min(broadcast(high), max(broadcast(low), x));
}
[[gnu::always_inline]] inline F32 or_zero(I32 keep, F32 x) { return select(keep, x, F32{}); }

/// s(z) = m m / d, 1 - s(z) = o o / d.
struct HalfSigmoid {
  F32 m, o, d;
  [[gnu::always_inline]] explicit HalfSigmoid(F32 z) {
    const F32 h = exp(-0.5f * abs(z)), one = broadcast(1.0f);
    const auto left = z < 0.0f;
    m = select(left, h, one);
    o = select(left, one, h);
    d = 1.0f + h * h;
  }
};
/// x s(z), z being beta x.
struct SwishUnit {
  float beta;
  [[gnu::always_inline]] static F32 bounded(F32 x, F32 z) {
    return select(z < 0.0f, clamped(x, -1e30f, 1e30f), x);
  }
  [[gnu::always_inline]] static F32 value_at(F32 x, F32 z) {
    const HalfSigmoid s(z);
    return bounded(x, z) * s.m * (s.m / s.d);
  }
  [[gnu::always_inline]] static Pair pair_at(F32 x, F32 z) {
    const HalfSigmoid s(z);
    const F32 inverse = 1.0f / s.d, q = s.m * inverse, t = clamped(z, -1e4f, 1e4f);
    return {bounded(x, z) * s.m * q, (1.0f + t * (s.o * s.o * inverse)) * s.m * q};
  }
  [[gnu::always_inline]] F32 value(F32 x) const { return value_at(x, x * beta); }
  [[gnu::always_inline]] Pair pair(F32 x) const { return pair_at(x, x * beta); }
};

struct TanhUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return tanh(x); }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 t = tanh(x);
    return {t, 1.0f - t * t};
  }
};

/// exp(c) - 1 for c <= 0.
[[gnu::always_inline]] inline F32 expm1_of(F32 c) {
  const F32 t = tanh(0.5f * c);
  return 2.0f * t / (1.0f - t);
}
struct EluUnit {
  float alpha, scale;
  [[gnu::always_inline]] F32 value(F32 x) const {
    return select(x > 0.0f, scale * x, alpha * scale * expm1_of(min(F32{}, x)));
  }
  [[gnu::always_inline]] Pair pair(F32 x) const {
    return {value(x), select(x > 0.0f, broadcast(scale), alpha * scale * exp(min(F32{}, x)))};
  }
};

struct SoftplusUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return pair(x).value; }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 e = exp(-abs(x)), one = broadcast(1.0f), u = e + one, d = u - one;
    const auto visible = d > 0.0f;
    const F32 small = log(u) * e / select(visible, d, one);
    return {max(F32{}, x) + select(visible, small, e), select(x < 0.0f, e, one) / u};
  }
};

/// y (+)= cap tanh(x / cap), or with dy its gradient.
inline void soft_cap(int64_t n, float cap, const float* dy, const float* x, float* y, bool add) {
  each_vector(n, [&](int64_t i, auto lanes) {
    const Pair p = TanhUnit::pair(load_some(x + i, lanes) / cap);
    put(y + i, dy == nullptr ? cap * p.value : load_some(dy + i, lanes) * p.slope, lanes, add);
  });
}

inline void learned_swish(const LearnedSwishRow& a) {
  each_vector(a.n, [&](int64_t i, auto lanes) {
    const F32 x = load_some(a.x + i, lanes);
    const F32 z = x * (a.step == 0 ? broadcast(*a.beta) : load_some(a.beta + i, lanes));
    if (a.dy == nullptr) return put(a.y + i, SwishUnit::value_at(x, z), lanes, a.add);
    const F32 dy = load_some(a.dy + i, lanes);
    if (a.y != nullptr) put(a.y + i, dy * SwishUnit::pair_at(x, z).slope, lanes, a.add);
    if (a.sums == nullptr) return;
    const F32 h = exp(-0.5f * abs(z)), part = clamped(x, -1e30f, 1e30f) * h / (1.0f + h * h);
    put(a.sums + i, dy * (part * part), lanes, true);
  });
}

inline XieluSums xielu(const XieluRow& a) {
  F32 sum_p{}, sum_n{};
  each_vector(a.count, [&](int64_t i, auto lanes) {
    const F32 x = load_some(a.x + i, lanes), c = min(broadcast(a.eps), x);
    const auto right = x > 0.0f;
    const F32 up = or_zero(right, x), curve = expm1_of(c);
    if (a.dy == nullptr) {
      const F32 below = a.n * curve + (a.b - a.n) * x;
      return put(a.y + i, select(right, up * (a.p * up + a.b), below), lanes, a.add);
    }
    const F32 dy = load_some(a.dy + i, lanes);
    if (a.y != nullptr) {
      const F32 below = or_zero(x < a.eps, a.n * exp(c)) + (a.b - a.n);
      put(a.y + i, dy * select(right, 2.0f * a.p * up + a.b, below), lanes, a.add);
    }
    sum_p += dy * (up * up);  // lanes past the end have dy = 0
    sum_n += dy * select(right, F32{}, curve - x);
  });
  return {sum(sum_p), sum(sum_n)};
}

}  // namespace
}  // namespace tally::cpu
