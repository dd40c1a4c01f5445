#pragma once
// Elementary functions on vectors. The same instructions run in every lane whatever the value, so
// n copies of a number give n equal results; tails go through load_first / store_first and hence
// through this code too. Polynomials are minimax fits (Lawson's iteration) made for this file.
// Largest errors in units of the last place over all of f32: docs/proofs.md, measured by
// tests/ulp_test.cpp.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

/// c[0] + c[1] x + c[2] x^2 ...
template <int N>
[[gnu::always_inline]] inline F32 polynomial(const float (&c)[N], F32 x) {
  F32 y = broadcast(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, broadcast(c[i]));
  return y;
}

/// p 2^n for whole n; overflows to infinity and underflows to zero like a single multiplication.
[[gnu::always_inline]] inline F32 scale_by_power(F32 p, F32 n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(p, n);
#else
  const F32 in_range = min(broadcast(256.0f), max(broadcast(-252.0f), n));
  const I32 whole = __builtin_convertvector(in_range, I32), half = whole >> 1;
  const F32 a = from_bits((half + 127) << 23), b = from_bits((whole - half + 127) << 23);
  return p * a * b;
#endif
}

struct TwoFloats {
  F32 value, low;  // what the value could not hold
};
/// e^(x + low) 2^shift, where |low| <= 4 carries what x could not.
[[gnu::always_inline]] inline TwoFloats exp_two(F32 x, F32 low, F32 shift) {
  constexpr float kLog2e = 0x1.715476p+0f, kRound = 0x1.8p+23f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n kLn2High is exact
  constexpr float kQ[] = {0x1.fffffcp-2f, 0x1.55548ap-3f, 0x1.555916p-5f, 0x1.123fc6p-7f,
                          0x1.6a1a72p-10f};
  const F32 in_range = min(broadcast(200.0f), max(broadcast(-200.0f), x));
  const F32 n = fma(in_range + low, broadcast(kLog2e), broadcast(kRound)) - kRound;
  F32 r = fma(n, broadcast(-kLn2High), in_range);
  r = fma(n, broadcast(-kLn2Low), r) + low;
  const F32 q = fma(polynomial(kQ, r), r * r, r), p = q + 1.0f;
  return {scale_by_power(p, n + shift), scale_by_power(q - (p - 1.0f), n + shift)};
}
[[gnu::always_inline]] inline F32 exp_parts(F32 x, F32 low, F32 shift) {
  return exp_two(x, low, shift).value;
}
/// Infinity above 88.73, zero below -103.98 (below -87.34 when subnormals are flushed).
[[gnu::always_inline]] inline F32 exp(F32 x) { return exp_parts(x, F32{}, F32{}); }

/// Natural logarithm: -infinity at 0, NaN below.
[[gnu::always_inline]] inline F32 log(F32 x) {
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  constexpr float kP[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547244p-3f,
                          0x1.22da1cp-3f, -0x1.0d8542p-3f, 0x1.055b6cp-3f, -0x1.38b582p-4f};
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const I32 tiny = x < 0x1p-126f;
  // Modulo 2^32: bits of infinities and NaNs lead anywhere, and are selected away below.
  const U32 b = reinterpret_cast<U32>(bits(select(tiny, x * 0x1p+23f, x)));
  const I32 e = reinterpret_cast<I32>(b - static_cast<uint32_t>(kRootHalf)) >> 23;
  const I32 rest = reinterpret_cast<I32>(b - (reinterpret_cast<U32>(e) << 23));
  const F32 f = from_bits(rest) - 1.0f;  // 1 + f in [sqrt(1/2), sqrt(2))
  const F32 n = __builtin_convertvector(e + (tiny & -23), F32), s = f * f;
  F32 y = fma(polynomial(kP, f), s * f, n * kLn2Low);
  y = fma(broadcast(-0.5f), s, y) + f;
  y = fma(n, broadcast(kLn2High), y);
  const F32 infinity = broadcast(__builtin_inff());
  y = select(x < infinity, y, x);  // infinity and NaN stay
  y = select(x == 0.0f, -infinity, y);
  return select(x < 0.0f, broadcast(__builtin_nanf("")), y);
}

[[gnu::always_inline]] inline F32 tanh(F32 x) {
  constexpr float kP[] = {-0x1.55552ap-2f, 0x1.110552p-3f, -0x1.b7fd5p-5f, 0x1.50820ep-6f,
                          -0x1.6e69aep-8f};
  const F32 a = abs(x), s = a * a;
  const F32 small = fma(polynomial(kP, s), s * a, a);
  const F32 large = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  return copy_sign(select(a < 0.625f, small, large), x);
}

/// 1 / (1 + x + low) for x >= 0.
[[gnu::always_inline]] inline TwoFloats reciprocal_of_one_more(F32 x, F32 low) {
  const F32 one = broadcast(1.0f), d = x + one, large = max(x, one), small = min(x, one);
  const F32 d_low = small - (d - large) + low, t = one / d;
  return {t, t * (fma(-d, t, one) - d_low * t)};
}

/// 2^shift erfc(a), erfc(a) = t exp(P(1 - t) - a^2), t = 1 / (1 + a / 2), for a >= 0; a + a_low and
/// its square + low hold more than one float does. (The form is Numerical Recipes' erfcc, turned
/// round so that P(0) = 0.)
[[gnu::always_inline]] inline F32 erfc_parts(F32 a, F32 a_low, F32 square, F32 low, F32 shift) {
  constexpr float kFirst = -0x1.41bb04p+0f;
  constexpr float kP[] = {-0x1.3670cap-2f, 0x1.484abep-3f,  0x1.9cd09ep-3f,
                          0x1.9be8p-6f,    -0x1.ba8a7cp-7f, -0x1.6f6094p-5f,
                          -0x1.17ba5ep-2f, 0x1.702536p-2f,  -0x1.ee1a46p-4f};
  const F32 half = 0.5f * a, half_low = 0.5f * a_low;
  const TwoFloats t = reciprocal_of_one_more(half, half_low);
  const F32 u = half * t.value;
  const F32 u_low = fma(half, t.value, -u) + fma(half, t.low, half_low * t.value);
  // The exponent in two floats: kFirst u - square and what that sum leaves, P's other terms, and
  // what u could not hold times the slope.
  const F32 first = kFirst * u, first_low = fma(broadcast(kFirst), u, -first);
  const F32 high = first - square, part = high - first;
  const F32 left = (first - (high - part)) - (square + part);
  const F32 rest = fma(polynomial(kP, u), u * u, first_low);
  const F32 slope = fma(u, 0.4f * u, broadcast(kFirst));
  const F32 e = exp_parts(high, fma(slope, u_low, rest + (left - low)), shift);
  return fma(e, t.value, e * t.low);
}

[[gnu::always_inline]] inline F32 erf(F32 x) {
  constexpr float kP[] = {0x1.06eba8p-3f, -0x1.812742p-2f,  0x1.ce2e0ap-4f, -0x1.b80e9p-6f,
                          0x1.54c7f4p-8f, -0x1.aa3f28p-11f, 0x1.5cd49ep-14f};
  const F32 a = min(broadcast(12.0f), abs(x)), s = a * a;
  const F32 small = fma(polynomial(kP, s), a, a);
  const F32 large = 1.0f - erfc_parts(a, F32{}, s, fma(a, a, -s), F32{});
  return copy_sign(select(a < 0.93f, small, large), x);
}

/// 2^shift times the share of the standard normal distribution beyond a >= 0.
[[gnu::always_inline]] inline F32 normal_tail(F32 a, F32 shift) {
  const F32 near = min(broadcast(16.0f), a), s = near * near;
  const F32 half = 0.5f * s, low = 0.5f * fma(near, near, -s);
  constexpr float kRootHalf = 0x1.6a09e6p-1f, kRootHalfLow = 0x1.9fcef4p-27f;
  const F32 root = near * kRootHalf;
  const F32 root_low = fma(near, broadcast(kRootHalfLow), fma(near, broadcast(kRootHalf), -root));
  return 0.5f * erfc_parts(root, root_low, half, low, shift);
}
/// The standard normal distribution function, (1 + erf(x / sqrt 2)) / 2, accurate in its left tail
/// too: GELU(x) = x normal_cdf(x).
[[gnu::always_inline]] inline F32 normal_cdf(F32 x) {
  const F32 tail = normal_tail(abs(x), F32{});
  return select(x < 0.0f, tail, 1.0f - tail);
}

/// 1 / (1 + e^-x)
[[gnu::always_inline]] inline F32 sigmoid(F32 x) { return 1.0f / (exp(-x) + 1.0f); }

/// x sigmoid(x). Far left both sides of the fraction carry 2^-8, so that e^-x does not overflow
/// while the result is still a normal number; that ends at -92.
[[gnu::always_inline]] inline F32 silu(F32 x) {
  const I32 left = x < -64.0f;
  const F32 shift = select(left, broadcast(-8.0f), F32{});
  const F32 one = select(left, broadcast(0x1p-8f), broadcast(1.0f));
  const F32 y = x * one / (exp_parts(-x, F32{}, shift) + one);
  return select(x < -150.0f, broadcast(-0.0f), y);
}

}  // namespace
}  // namespace tally::cpu
