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

// To the left of 0 the shares below are held 2^24 times too large, so that x share(x) is still a
// normal number where the share is none.
constexpr float kUp = 24, kDown = 0x1p-24f;

/// sigmoid(z + low) and sigmoid(-z - low) for z >= 0: an exponent needs more digits than a float
/// has, at 80 half a unit of its last place is 32 of exp's.
struct Shares {
  F32 big, small;  // the small one 2^24 times too large
};
[[gnu::always_inline]] inline Shares shares_of(F32 z, F32 low) {
  const F32 e = exp_parts(-z, -low, broadcast(kUp));
  const TwoFloats t = reciprocal_of_one_more(e * kDown, F32{});
  const F32 big = t.value + t.low;
  return {big, e * big};
}

/// The slope s (1 + t (1 - s)) of x s(z), t = x dz/dx: `big_t` is t times the big share.
[[gnu::always_inline]] inline F32 slope_of(Shares of, F32 big_t, I32 left) {
  return select(left, fma(of.small, big_t, of.small) * kDown, fma(of.small * kDown, big_t, of.big));
}

/// x s(z + low), z + low being beta x.
struct SwishUnit {
  float beta, beta_low;
  explicit SwishUnit(double b)
      : beta(static_cast<float>(b)), beta_low(static_cast<float>(b - static_cast<double>(beta))) {}
  static constexpr float kFar = 150;  // x s(z) is 0 or x from here on
  [[gnu::always_inline]] static Shares shares(F32 z, F32 low) {
    const F32 size = abs(z), side = select(z < 0.0f, -low, low);
    return shares_of(min(broadcast(kFar), size), select(size < kFar, side, F32{}));
  }
  [[gnu::always_inline]] static F32 value_at(F32 x, F32 z, F32 low) {
    const Shares of = shares(z, low);
    return select(z < 0.0f, clamped(x, -1e30f, 1e30f) * of.small * kDown, x * of.big);
  }
  [[gnu::always_inline]] static Pair pair_at(F32 x, F32 z, F32 low) {
    const Shares of = shares(z, low);
    const F32 near = clamped(z, -kFar, kFar), near_low = or_zero(abs(z) < kFar, low);
    const F32 big_t = fma(near, of.big, near_low * of.big);
    return {value_at(x, z, low), slope_of(of, big_t, z < 0.0f)};
  }
  [[gnu::always_inline]] F32 low(F32 x, F32 z) const {
    return fma(x, broadcast(beta_low), fma(x, broadcast(beta), -z));
  }
  [[gnu::always_inline]] F32 value(F32 x) const { return value_at(x, x * beta, low(x, x * beta)); }
  [[gnu::always_inline]] Pair pair(F32 x) const { return pair_at(x, x * beta, low(x, x * beta)); }
};

struct TanhUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return tanh(x); }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    // 4 e, e = exp(-2 |x|), which is still a normal number where e is none. Every product keeps
    // what it rounds off: three roundings are 3 ULP.
    const TwoFloats e = exp_two(-2.0f * abs(x), F32{}, broadcast(2.0f));
    const TwoFloats t = reciprocal_of_one_more(0.25f * e.value, 0.25f * e.low);
    const F32 square = t.value * t.value, slope = e.value * square;
    const F32 square_low = fma(t.value, t.value, -square) + 2.0f * t.value * t.low;
    const F32 left = fma(e.low, square, fma(e.value, square, -slope));
    return {tanh(x), slope + fma(e.value, square_low, left)};
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
    const F32 beta = a.step == 0 ? broadcast(*a.beta) : load_some(a.beta + i, lanes);
    const F32 z = x * beta, low = fma(x, beta, -z);
    if (a.dy == nullptr) return put(a.y + i, SwishUnit::value_at(x, z, low), lanes, a.add);
    const F32 dy = load_some(a.dy + i, lanes);
    if (a.y != nullptr) put(a.y + i, dy * SwishUnit::pair_at(x, z, low).slope, lanes, a.add);
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
