#pragma once
// The widest vector of the instruction set that this translation unit is compiled for, and the
// few operations kernels need, so that a kernel is written once. Included by isa_*.cpp through
// the kernel headers, never by other code.
//
// Everything sits in an unnamed namespace: each isa_*.cpp gets its own copy with internal
// linkage, so code compiled for AVX-512 can never be merged with code for an older CPU. For the
// same reason nothing of the standard library is included here but plain C headers.
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <stddef.h>
#include <stdint.h>

namespace tally::cpu {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
/// Lanes of F32 and I32, and of F64.
inline constexpr int kLanes = kVectorBytes / 4, kLanes64 = kVectorBytes / 8;

/// Vectors. + - * / < > == & | ^ << >> work lane by lane; a comparison gives lanes of 0 and -1
/// (an I32) for `select`. A scalar operand is broadcast.
using F32 [[gnu::vector_size(kVectorBytes)]] = float;
using I32 [[gnu::vector_size(kVectorBytes)]] = int32_t;
using U32 [[gnu::vector_size(kVectorBytes)]] = uint32_t;
using F64 [[gnu::vector_size(kVectorBytes)]] = double;
using I64 [[gnu::vector_size(kVectorBytes)]] = int64_t;
using U64 [[gnu::vector_size(kVectorBytes)]] = uint64_t;
using U16 [[gnu::vector_size(kVectorBytes / 2)]] = uint16_t;

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = F32;
};
template <>
struct VectorOf<double> {
  using Type = F64;
};
/// The vector of T (float or double) and its lanes, for kernels that are templates on the scalar.
template <class T>
using Vector = typename VectorOf<T>::Type;
template <class T>
inline constexpr int kLanesOf = kVectorBytes / static_cast<int>(sizeof(T));

[[gnu::always_inline]] inline I32 bits(F32 x) { return reinterpret_cast<I32>(x); }
[[gnu::always_inline]] inline F32 from_bits(I32 x) { return reinterpret_cast<F32>(x); }

[[gnu::always_inline]] inline F32 broadcast(float x) { return x - F32{}; }
[[gnu::always_inline]] inline F64 broadcast(double x) { return x - F64{}; }
[[gnu::always_inline]] inline I32 broadcast(int32_t x) { return x - I32{}; }

/// Lane numbers 0, 1, 2 ...
[[gnu::always_inline]] inline I32 iota() {
#if defined(__AVX512F__)
  return I32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(__AVX2__)
  return I32{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return I32{0, 1, 2, 3};
#endif
}

// ---- memory: no alignment is needed

[[gnu::always_inline]] inline F32 load(const float* p) {
  F32 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline F64 load(const double* p) {
  F64 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline I32 load(const int32_t* p) {
  I32 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline void store(float* p, F32 v) { __builtin_memcpy(p, &v, sizeof v); }
[[gnu::always_inline]] inline void store(double* p, F64 v) { __builtin_memcpy(p, &v, sizeof v); }
[[gnu::always_inline]] inline void store(int32_t* p, I32 v) { __builtin_memcpy(p, &v, sizeof v); }

/// The first n lanes (0 <= n; n >= kLanes is all of them); the others read as zero and their
/// memory is not touched.
[[gnu::always_inline]] inline F32 load_first(const float* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1), p);
#elif defined(__AVX2__)
  return _mm256_maskload_ps(p, reinterpret_cast<__m256i>(iota() < static_cast<int32_t>(n)));
#else
  F32 v{};
  __builtin_memcpy(&v, p, static_cast<size_t>(n >= 4 ? 4 : n) * sizeof(float));
  return v;
#endif
}
[[gnu::always_inline]] inline F64 load_first(const double* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>(n >= 8 ? 0xff : (1u << n) - 1), p);
#elif defined(__AVX2__)
  return _mm256_maskload_pd(p, reinterpret_cast<__m256i>(I64{0, 1, 2, 3} < n));
#else
  F64 v{};
  __builtin_memcpy(&v, p, static_cast<size_t>(n >= 2 ? 2 : n) * sizeof(double));
  return v;
#endif
}
/// Writes the first n lanes and leaves the memory of the others alone.
[[gnu::always_inline]] inline void store_first(float* p, F32 v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1), v);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(iota() < static_cast<int32_t>(n)), v);
#else
  __builtin_memcpy(p, &v, static_cast<size_t>(n >= 4 ? 4 : n) * sizeof(float));
#endif
}
[[gnu::always_inline]] inline void store_first(double* p, F64 v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>(n >= 8 ? 0xff : (1u << n) - 1), v);
#elif defined(__AVX2__)
  _mm256_maskstore_pd(p, reinterpret_cast<__m256i>(I64{0, 1, 2, 3} < n), v);
#else
  __builtin_memcpy(p, &v, static_cast<size_t>(n >= 2 ? 2 : n) * sizeof(double));
#endif
}
/// Writes past the caches, for results that are not read again soon: p aligned to kVectorBytes.
/// A kernel that used it calls `stream_fence` before it returns.
[[gnu::always_inline]] inline void stream(float* p, F32 v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, v);
#elif defined(__AVX2__)
  _mm256_stream_ps(p, v);
#elif defined(__SSE2__)
  _mm_stream_ps(p, v);
#else
  store(p, v);
#endif
}
[[gnu::always_inline]] inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// ---- arithmetic

/// a b + c with one rounding (two on the baseline, which has no such instruction).
[[gnu::always_inline]] inline F32 fma(F32 a, F32 b, F32 c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
[[gnu::always_inline]] inline F64 fma(F64 a, F64 b, F64 c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}
/// Products of the lower halves of the lanes; the upper halves may hold anything.
[[gnu::always_inline]] inline U64 multiply_lower(U64 a, U64 b) {
#if defined(__AVX512F__)
  return reinterpret_cast<U64>(
      _mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<U64>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<U64>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}
/// mask ? a : b, lane by lane.
[[gnu::always_inline]] inline F32 select(I32 mask, F32 a, F32 b) { return mask ? a : b; }
[[gnu::always_inline]] inline I32 select(I32 mask, I32 a, I32 b) { return mask ? a : b; }
/// A NaN in b is kept, a NaN in a is lost (as the instructions do): put the data in b.
[[gnu::always_inline]] inline F32 max(F32 a, F32 b) { return a > b ? a : b; }
[[gnu::always_inline]] inline F32 min(F32 a, F32 b) { return a < b ? a : b; }
[[gnu::always_inline]] inline F32 abs(F32 x) { return from_bits(bits(x) & 0x7fffffff); }
/// The size of x with the sign of s.
[[gnu::always_inline]] inline F32 copy_sign(F32 x, F32 s) {
  return from_bits((bits(x) & 0x7fffffff) | (bits(s) & INT32_MIN));
}
/// Correctly rounded.
[[gnu::always_inline]] inline F32 sqrt(F32 x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  return F32{__builtin_sqrtf(x[0]), __builtin_sqrtf(x[1]), __builtin_sqrtf(x[2]),
             __builtin_sqrtf(x[3])};
#endif
}

// ---- across lanes, in a fixed order: halves, quarters, ...

using Quarter [[gnu::vector_size(16)]] = float;
[[gnu::always_inline]] inline float sum(F32 v) {
#if defined(__AVX512F__)
  const auto half = reinterpret_cast<__m256>(_mm512_extractf64x4_pd(reinterpret_cast<F64>(v), 1));
  const auto w = _mm512_castps512_ps256(v) + half;
  const Quarter q = _mm256_castps256_ps128(w) + _mm256_extractf128_ps(w, 1);
#elif defined(__AVX2__)
  const Quarter q = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
#else
  const Quarter q = v;
#endif
  return (q[0] + q[2]) + (q[1] + q[3]);
}
/// The largest lane; lanes that are NaN may be lost.
[[gnu::always_inline]] inline float max_lane(F32 v) {
#if defined(__AVX512F__)
  const auto half = reinterpret_cast<__m256>(_mm512_extractf64x4_pd(reinterpret_cast<F64>(v), 1));
  const auto w = _mm256_max_ps(_mm512_castps512_ps256(v), half);
  const Quarter q = _mm_max_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
#elif defined(__AVX2__)
  const Quarter q = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
#else
  const Quarter q = v;
#endif
  const float a = q[0] > q[2] ? q[0] : q[2], b = q[1] > q[3] ? q[1] : q[3];
  return a > b ? a : b;
}
/// Sum of the lanes in double precision.
[[gnu::always_inline]] inline double sum(F64 v) {
  double total = 0;
  for (int i = 0; i < kLanes64; ++i) total += v[i];
  return total;
}

// ---- bfloat16, held as uint16_t

[[gnu::always_inline]] inline F32 load_bf16(const uint16_t* p) {
  U16 v;
  __builtin_memcpy(&v, p, sizeof v);
  return reinterpret_cast<F32>(__builtin_convertvector(v, U32) << 16);
}
/// Rounds to nearest even; a NaN stays one.
[[gnu::always_inline]] inline void store_bf16(uint16_t* p, F32 x) {
  const U32 b = reinterpret_cast<U32>(x);
  const U32 rounded = b + 0x7fffu + ((b >> 16) & 1u);
  // NOLINTNEXTLINE(misc-redundant-expression): a NaN alone differs from itself
  const U16 v = __builtin_convertvector((x == x ? rounded : (b | 0x400000u)) >> 16, U16);
  __builtin_memcpy(p, &v, sizeof v);
}

}  // namespace
}  // namespace tally::cpu
