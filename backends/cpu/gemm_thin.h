#pragma once
// A few rows times a transposed B, as in decoding: every weight is read once, so nothing is packed.
// Strips of B's rows are turned into vectors in registers and used on the spot. The order of the
// sums is that of gemm_kernels.h, so the bits are too.
#include "backends/cpu/gemm_args.h"
#include "backends/cpu/gemm_pack.h"
#include "backends/cpu/gemm_tile.h"

namespace tally::cpu {
namespace {

#if defined(__AVX512F__)
inline constexpr int kThinRows = 8;
#else
inline constexpr int kThinRows = 4;
#endif

/// sums[i] += a's row i times the next strip of the rows b; a is packed (k, Count). A cache line
/// holds four strips: each of them fetches its quarter of the rows.
template <int Quarter, class T, int Count, class Rows>
[[gnu::always_inline]] inline void thin_vector(const T* a, int64_t ahead, Rows& b,
                                               Vector<T> (&sums)[Count]) {
  if constexpr (Quarter >= 0)
    for (int i = Quarter; i < kLanesOf<T>; i += 4) __builtin_prefetch(b.at(i) + ahead, 0, 3);
  Vector<T> t[kStrip<T>];
  transpose_strip(b, t);
  b.skip(kStrip<T>);
  for (int s = 0; s < kStrip<T>; ++s)
    for (int i = 0; i < Count; ++i) sums[i] = fma(broadcast(a[s * Count + i]), t[s], sums[i]);
}
/// Both vectors of a tile, written out: the compiler would keep a loop, and the sums in memory.
template <int Quarter, class T, int Count, class Rows>
[[gnu::always_inline]] inline void thin_strip(const T*& a, int64_t ahead, Rows (&b)[kTileVectors],
                                              Vector<T> (&sums)[kTileVectors][Count]) {
  static_assert(kTileVectors == 2);
  thin_vector<Quarter, T, Count>(a, ahead, b[0], sums[0]);
  thin_vector<Quarter, T, Count>(a, ahead, b[1], sums[1]);
  a += kStrip<T> * Count;
}

/// What will be read kReach elements later: further along the rows, or at the start of the rows of
/// the next tile when less than that is left.
template <class T>
struct Reach {
  static constexpr int64_t kReach = 1024 / sizeof(T);
  int64_t left, next_tile;  // elements left of the rows; from their end to the next tile's start
  int64_t ahead() const { return left > kReach ? kReach : kReach + next_tile; }
};

/// All of a depth block.
template <class T, int Count, class Rows>
[[gnu::always_inline]] inline void thin_depth(const T* a, int64_t depth, Reach<T>& reach,
                                              Rows (&b)[kTileVectors],
                                              Vector<T> (&sums)[kTileVectors][Count]) {
  constexpr int kLine = 4 * kStrip<T>;
  for (; depth >= kLine; depth -= kLine, reach.left -= kLine) {
    const int64_t ahead = reach.ahead();
    thin_strip<0>(a, ahead, b, sums);
    thin_strip<1>(a, ahead, b, sums);
    thin_strip<2>(a, ahead, b, sums);
    thin_strip<3>(a, ahead, b, sums);
  }
  reach.left -= depth;
  for (; depth >= kStrip<T>; depth -= kStrip<T>) thin_strip<-1>(a, 0, b, sums);
  for (; depth > 0; --depth, a += Count)
    for (int v = 0; v < kTileVectors; ++v) {
      T t[kLanesOf<T>];
      for (int i = 0; i < kLanesOf<T>; ++i) t[i] = *b[v].at(i);
      b[v].skip(1);
      for (int i = 0; i < Count; ++i) sums[v][i] = fma(broadcast(a[i]), load(t), sums[v][i]);
    }
}

/// One tile of columns, all of k, block of depth by block of depth.
template <class T, int Count, class Rows>
[[gnu::always_inline]] inline void thin_tile(const Gemm<T>& g, const T* a, int64_t j,
                                             Rows (&b)[kTileVectors]) {
  constexpr int64_t kColumns = kTileVectors * kLanesOf<T>;
  const int64_t step = gemm_depth(g.k);
  Reach<T> reach{g.k, kColumns * g.ldb - g.k};
  for (int64_t p = 0; p < g.k; p += step) {
    const int64_t depth = smaller(step, g.k - p);
    const bool last = p + depth == g.k;
    Vector<T> sums[kTileVectors][Count] = {};
    thin_depth<T, Count>(a + p * Count, depth, reach, b, sums);
    T copy[Count * kColumns];
    for (int i = 0; i < Count; ++i)
      for (int v = 0; v < kTileVectors; ++v)
        store(copy + i * kColumns + v * kLanesOf<T>, sums[v][i]);
    const TileOut<T> out{g.c + j,
                         g.ldc,
                         smaller(g.n - j, kColumns),
                         g.alpha,
                         p > 0 || g.beta != 0,
                         last && g.bias != nullptr ? g.bias + j : nullptr,
                         {}};
    write_edge<T>(Count, kTileVectors, copy, out);
    if (out.bias != nullptr) add_bias<T>(Count, out);
  }
}

template <class T, int Count>
void thin_columns(const Gemm<T>& g, const T* a, int64_t j) {
  constexpr int64_t n = kLanesOf<T>;
  const T* from = g.b + j * g.ldb;
  if (j + kTileVectors * n <= g.n) {
    EvenRows<T> b[] = {{from, g.ldb}, {from + n * g.ldb, g.ldb}};
    return thin_tile<T, Count>(g, a, j, b);
  }
  const int64_t left = g.n - j, second = left > n ? left - n : 1;
  ListedRows<T> b[] = {{from, g.ldb, left}, {left > n ? from + n * g.ldb : from, g.ldb, second}};
  thin_tile<T, Count>(g, a, j, b);
}

template <class T, int Count = kThinRows>
void thin_columns_of(const Gemm<T>& g, const T* a, int64_t j) {
  if (g.m == Count) return thin_columns<T, Count>(g, a, j);
  if constexpr (Count > 1) thin_columns_of<T, Count - 1>(g, a, j);
}

/// Columns [j0, j1) of a product with trans_b and at most kThinRows rows. `a` is op(A) packed
/// (k, m): element (i, p) at p * m + i.
template <class T>
void gemm_thin(const Gemm<T>& g, const T* a, int64_t j0, int64_t j1) {
  for (int64_t j = j0; j < j1; j += kTileVectors * kLanesOf<T>) thin_columns_of<T>(g, a, j);
}

}  // namespace
}  // namespace tally::cpu
