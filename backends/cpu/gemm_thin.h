#pragma once
// A few rows times a transposed B, as in decoding: every weight is read once, so nothing is packed.
// Strips of B's rows are turned into vectors in registers and used on the spot. The order of the
// sums is that of gemm_kernels.h, so the bits are too.
#include "backends/cpu/gemm_args.h"
#include "backends/cpu/gemm_pack.h"
#include "backends/cpu/gemm_tile.h"

namespace tally::cpu {
namespace {

/// Rows that are multiplied together; a number between is made up with zeros.
#if defined(__AVX512F__)
inline constexpr int kThinRows = 8;
#else
inline constexpr int kThinRows = 4;
#endif

/// sums[i] += a's row i times the next strip of the rows b; a is packed (k, Count). A cache line
/// holds four strips: each of them fetches its quarter of the rows.
template <int Quarter, class T, int Count>
[[gnu::always_inline]] inline void thin_vector(const T* a, int64_t ahead, EvenRows<T>& b,
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
template <int Quarter, class T, int Count>
[[gnu::always_inline]] inline void thin_strip(const T*& a, int64_t ahead,
                                              EvenRows<T> (&b)[kTileVectors],
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
template <class T, int Count>
[[gnu::always_inline]] inline void thin_depth(const T* a, int64_t depth, Reach<T>& reach,
                                              EvenRows<T> (&b)[kTileVectors],
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

/// One tile of columns, all of k, block of depth by block of depth. The last tile ends where B ends
/// and leaves out the columns that the one before it has done.
template <class T, int Count>
void thin_tile(const Gemm<T>& g, const T* a, int64_t j) {
  constexpr int64_t n = kLanesOf<T>, kColumns = kTileVectors * n;
  const int64_t step = gemm_depth(g.k), first = smaller(j, g.n - kColumns), skip = j - first;
  EvenRows<T> b[] = {{g.b + first * g.ldb, g.ldb}, {g.b + (first + n) * g.ldb, g.ldb}};
  Reach<T> reach{g.k, kColumns * g.ldb - g.k};
  for (int64_t p = 0; p < g.k; p += step) {
    const int64_t depth = smaller(step, g.k - p);
    const bool last = p + depth == g.k;
    Vector<T> sums[kTileVectors][Count] = {};
    thin_depth<T, Count>(a + p * Count, depth, reach, b, sums);
    T copy[Count * kColumns + kColumns];
    for (int i = 0; i < Count; ++i)
      for (int v = 0; v < kTileVectors; ++v) store(copy + i * kColumns + v * n, sums[v][i]);
    const T* bias = last && g.bias != nullptr ? g.bias + j : nullptr;
    const TileOut<T> out{g.c + j, g.ldc, kColumns - skip, g.alpha, p > 0 || g.beta != 0, bias, {}};
    const int rows = static_cast<int>(smaller(g.m, Count));
    write_edge<T>(rows, kTileVectors, copy + skip, out);
    if (bias != nullptr) add_bias<T>(rows, out);
  }
}

/// Columns [j0, j1) of a product with trans_b, at most kThinRows rows and at least a tile of
/// columns. `a` is op(A) packed (k, thin_rows_for(m)), zeros where there are no rows.
template <class T>
void gemm_thin(const Gemm<T>& g, const T* a, int64_t j0, int64_t j1) {
  for (int64_t j = j0; j < j1; j += kTileVectors * kLanesOf<T>) {
    if (g.m == 1)
      thin_tile<T, 1>(g, a, j);
    else if (g.m == 2)
      thin_tile<T, 2>(g, a, j);
    else if (g.m <= 4)
      thin_tile<T, 4>(g, a, j);
    else if constexpr (kThinRows == 8)
      thin_tile<T, 8>(g, a, j);
  }
}

}  // namespace
}  // namespace tally::cpu
