#pragma once
// Packing: copies of parts of A and B in the order in which the micro-kernel reads them, so that it
// walks through memory in steps of one and meets each page once.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// 16 bytes from each of several rows, one beside the other: rows[0], rows[step], ...
/// Loading quarters spares the shuffles that would move them between quarters later.
[[gnu::always_inline]] inline F32 load_quarters(const float* const* rows, int step, int64_t c) {
#if defined(__AVX512F__)
  F32 v = _mm512_zextps128_ps512(_mm_loadu_ps(rows[0] + c));
  v = _mm512_insertf32x4(v, _mm_loadu_ps(rows[step] + c), 1);
  v = _mm512_insertf32x4(v, _mm_loadu_ps(rows[2 * step] + c), 2);
  return _mm512_insertf32x4(v, _mm_loadu_ps(rows[3 * step] + c), 3);
#elif defined(__AVX2__)
  const F32 v = _mm256_zextps128_ps256(_mm_loadu_ps(rows[0] + c));
  return _mm256_insertf128_ps(v, _mm_loadu_ps(rows[step] + c), 1);
#else
  (void)step;
  return _mm_loadu_ps(rows[0] + c);
#endif
}
[[gnu::always_inline]] inline F64 load_quarters(const double* const* rows, int step, int64_t c) {
#if defined(__AVX512F__)
  F64 v = _mm512_zextpd128_pd512(_mm_loadu_pd(rows[0] + c));
  v = _mm512_insertf64x2(v, _mm_loadu_pd(rows[step] + c), 1);
  v = _mm512_insertf64x2(v, _mm_loadu_pd(rows[2 * step] + c), 2);
  return _mm512_insertf64x2(v, _mm_loadu_pd(rows[3 * step] + c), 3);
#elif defined(__AVX2__)
  const F64 v = _mm256_zextpd128_pd256(_mm_loadu_pd(rows[0] + c));
  return _mm256_insertf128_pd(v, _mm_loadu_pd(rows[step] + c), 1);
#else
  (void)step;
  return _mm_loadu_pd(rows[0] + c);
#endif
}

/// Columns c .. c + 3 (float) or c, c + 1 (double) of kLanes rows become vectors to + i * width.
[[gnu::always_inline]] inline void transpose_strip(const float* const* rows, int64_t c, float* to,
                                                   int64_t width) {
  F32 r[4];
  for (int i = 0; i < 4; ++i) r[i] = load_quarters(rows + i, 4, c);
#if defined(__AVX512F__)
  const F32 a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
  const F32 d = _mm512_unpacklo_ps(r[2], r[3]), e = _mm512_unpackhi_ps(r[2], r[3]);
  const F32 t[4] = {_mm512_shuffle_ps(a, d, 0x44), _mm512_shuffle_ps(a, d, 0xee),
                    _mm512_shuffle_ps(b, e, 0x44), _mm512_shuffle_ps(b, e, 0xee)};
#elif defined(__AVX2__)
  const F32 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
  const F32 d = _mm256_unpacklo_ps(r[2], r[3]), e = _mm256_unpackhi_ps(r[2], r[3]);
  const F32 t[4] = {_mm256_shuffle_ps(a, d, 0x44), _mm256_shuffle_ps(a, d, 0xee),
                    _mm256_shuffle_ps(b, e, 0x44), _mm256_shuffle_ps(b, e, 0xee)};
#else
  const F32 a = _mm_unpacklo_ps(r[0], r[1]), b = _mm_unpackhi_ps(r[0], r[1]);
  const F32 d = _mm_unpacklo_ps(r[2], r[3]), e = _mm_unpackhi_ps(r[2], r[3]);
  const F32 t[4] = {_mm_shuffle_ps(a, d, 0x44), _mm_shuffle_ps(a, d, 0xee),
                    _mm_shuffle_ps(b, e, 0x44), _mm_shuffle_ps(b, e, 0xee)};
#endif
  for (int i = 0; i < 4; ++i) store(to + i * width, t[i]);
}
[[gnu::always_inline]] inline void transpose_strip(const double* const* rows, int64_t c, double* to,
                                                   int64_t width) {
  const F64 a = load_quarters(rows, 2, c), b = load_quarters(rows + 1, 2, c);
#if defined(__AVX512F__)
  const F64 t[2] = {_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b)};
#elif defined(__AVX2__)
  const F64 t[2] = {_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)};
#else
  const F64 t[2] = {_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)};
#endif
  for (int i = 0; i < 2; ++i) store(to + i * width, t[i]);
}

/// A panel of a transposed copy: to[c * width + r] = from[r * ld + c] for r < rows <= width, width
/// a whole number of vectors. Lanes r >= rows repeat the last row; nothing reads what they lead to.
template <class T>
void pack_transposed(const T* from, int64_t ld, int64_t rows, int64_t columns, T* to,
                     int64_t width) {
  constexpr int kStrip = 16 / sizeof(T);
  for (int64_t r = 0; r < width; r += kLanesOf<T>) {
    const T* row[kLanesOf<T>];
    for (int i = 0; i < kLanesOf<T>; ++i) row[i] = from + smaller(r + i, rows - 1) * ld;
    int64_t c = 0;
    for (; c + kStrip <= columns; c += kStrip) transpose_strip(row, c, to + c * width + r, width);
    for (; c < columns; ++c)
      for (int i = 0; i < kLanesOf<T>; ++i) to[c * width + r + i] = row[i][c];
  }
}

/// Part of a panel of a straight copy: to[r * width + c] = from[r * ld + c] for c < columns <=
/// width, width a whole number of vectors; the rest of a row is zero.
template <class T>
void pack_straight(const T* from, int64_t ld, int64_t rows, int64_t columns, T* to, int64_t width) {
  constexpr int64_t n = kLanesOf<T>;
  if (columns == 2 * n) {
    for (int64_t r = 0; r < rows; ++r) {
      store(to + r * width, load(from + r * ld));
      store(to + r * width + n, load(from + r * ld + n));
    }
    return;
  }
  for (int64_t c = 0; c < width; c += n) {
    const int64_t left = columns > c ? columns - c : 0;
    for (int64_t r = 0; r < rows; ++r)
      store(to + r * width + c, load_first(from + r * ld + c, left));
  }
}

}  // namespace
}  // namespace tally::cpu
