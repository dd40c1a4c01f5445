#pragma once
// Packing: copies of parts of A and B in the order in which the micro-kernel reads them, so that it
// walks through memory in steps of one and meets each page once.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Columns that are turned into vectors at a time: 16 bytes of a row.
template <class T>
inline constexpr int kStrip = 16 / sizeof(T);

/// A vector's worth of rows at equal distances, read strip by strip. One pointer and one distance
/// reach all of them: an array of pointers would not stay in registers.
template <class T>
struct EvenRows {
  const T* first;
  int64_t ld;
  [[gnu::always_inline]] const T* at(int i) const {
    return first + i % kStrip<T> * ld + i / kStrip<T> * (kStrip<T> * ld);
  }
  [[gnu::always_inline]] void skip(int64_t n) { first += n; }
};
/// The same where only `rows` of them exist: the last is read in place of the others.
template <class T>
struct ListedRows {
  const T* row[kLanesOf<T>];
  ListedRows(const T* from, int64_t ld, int64_t rows) {
    for (int i = 0; i < kLanesOf<T>; ++i) row[i] = from + smaller(i, rows - 1) * ld;
  }
  const T* at(int i) const { return row[i]; }
  void skip(int64_t n) {
    for (int i = 0; i < kLanesOf<T>; ++i) row[i] += n;
  }
};

/// 16 bytes from row i and every kStrip-th after it, one beside the other. Loading quarters spares
/// the shuffles that would move them between quarters later.
template <class Rows>
[[gnu::always_inline]] inline F32 load_quarters(const Rows& rows, int i, float) {
#if defined(__AVX512F__)
  F32 v = _mm512_zextps128_ps512(_mm_loadu_ps(rows.at(i)));
  v = _mm512_insertf32x4(v, _mm_loadu_ps(rows.at(i + 4)), 1);
  v = _mm512_insertf32x4(v, _mm_loadu_ps(rows.at(i + 8)), 2);
  return _mm512_insertf32x4(v, _mm_loadu_ps(rows.at(i + 12)), 3);
#elif defined(__AVX2__)
  const F32 v = _mm256_zextps128_ps256(_mm_loadu_ps(rows.at(i)));
  return _mm256_insertf128_ps(v, _mm_loadu_ps(rows.at(i + 4)), 1);
#else
  return load(rows.at(i));
#endif
}
template <class Rows>
[[gnu::always_inline]] inline F64 load_quarters(const Rows& rows, int i, double) {
#if defined(__AVX512F__)
  F64 v = _mm512_zextpd128_pd512(_mm_loadu_pd(rows.at(i)));
  v = _mm512_insertf64x2(v, _mm_loadu_pd(rows.at(i + 2)), 1);
  v = _mm512_insertf64x2(v, _mm_loadu_pd(rows.at(i + 4)), 2);
  return _mm512_insertf64x2(v, _mm_loadu_pd(rows.at(i + 6)), 3);
#elif defined(__AVX2__)
  const F64 v = _mm256_zextpd128_pd256(_mm_loadu_pd(rows.at(i)));
  return _mm256_insertf128_pd(v, _mm_loadu_pd(rows.at(i + 2)), 1);
#else
  return load(rows.at(i));
#endif
}

/// Four columns of the rows, as load_quarters lays them out, become the vectors t[i].
[[gnu::always_inline]] inline void transpose_quarters(const F32 (&r)[4], F32* t) {
#if defined(__AVX512F__)
  const F32 a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
  const F32 c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
  t[0] = _mm512_shuffle_ps(a, c, 0x44), t[1] = _mm512_shuffle_ps(a, c, 0xee);
  t[2] = _mm512_shuffle_ps(b, d, 0x44), t[3] = _mm512_shuffle_ps(b, d, 0xee);
#elif defined(__AVX2__)
  const F32 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
  const F32 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
  t[0] = _mm256_shuffle_ps(a, c, 0x44), t[1] = _mm256_shuffle_ps(a, c, 0xee);
  t[2] = _mm256_shuffle_ps(b, d, 0x44), t[3] = _mm256_shuffle_ps(b, d, 0xee);
#else
  const F32 a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const F32 b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const F32 c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const F32 d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  t[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  t[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  t[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  t[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#endif
}

/// The next kStrip columns of the rows become the vectors t[i].
template <class Rows>
[[gnu::always_inline]] inline void transpose_strip(const Rows& rows, F32 (&t)[4]) {
  const F32 r[] = {load_quarters(rows, 0, 0.0f), load_quarters(rows, 1, 0.0f),
                   load_quarters(rows, 2, 0.0f), load_quarters(rows, 3, 0.0f)};
  transpose_quarters(r, t);
}
template <class Rows>
[[gnu::always_inline]] inline void transpose_strip(const Rows& rows, F64 (&t)[2]) {
  const F64 a = load_quarters(rows, 0, 0.0), b = load_quarters(rows, 1, 0.0);
#if defined(__AVX512F__)
  t[0] = _mm512_unpacklo_pd(a, b), t[1] = _mm512_unpackhi_pd(a, b);
#elif defined(__AVX2__)
  t[0] = _mm256_unpacklo_pd(a, b), t[1] = _mm256_unpackhi_pd(a, b);
#else
  t[0] = __builtin_shufflevector(a, b, 0, 2), t[1] = __builtin_shufflevector(a, b, 1, 3);
#endif
}

/// to[c * width + i] = row i, column c, for a vector's worth of rows.
template <class T, class Rows>
[[gnu::always_inline]] inline void transpose_rows(Rows rows, int64_t columns, T* to,
                                                  int64_t width) {
  int64_t c = 0;
  for (; c + kStrip<T> <= columns; c += kStrip<T>, rows.skip(kStrip<T>)) {
    Vector<T> t[kStrip<T>];
    transpose_strip(rows, t);
    for (int i = 0; i < kStrip<T>; ++i) store(to + (c + i) * width, t[i]);
  }
  for (int64_t left = 0; c + left < columns; ++left)
    for (int i = 0; i < kLanesOf<T>; ++i) to[(c + left) * width + i] = rows.at(i)[left];
}

/// A panel of a transposed copy: to[c * width + r] = from[r * ld + c] for r < rows, width a whole
/// number of vectors. Lanes r >= rows repeat the last row; nothing reads what they lead to.
template <class T>
void pack_transposed(const T* from, int64_t ld, int64_t rows, int64_t columns, T* to,
                     int64_t width) {
  for (int64_t r = 0; r < width; r += kLanesOf<T>, from += kLanesOf<T> * ld) {
    if (r + kLanesOf<T> <= rows) {
      transpose_rows(EvenRows<T>{from, ld}, columns, to + r, width);
    } else {
      const int64_t left = rows - r;  // may be none: then the last row, from before
      const T* last = left > 0 ? from : from + (left - 1) * ld;
      transpose_rows(ListedRows<T>(last, ld, left > 0 ? left : 1), columns, to + r, width);
    }
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
