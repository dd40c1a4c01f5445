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

/// sums[i] += a[i] column, one term.
template <class T, int Count>
[[gnu::always_inline]] inline void thin_term(const T* a, Vector<T> column,
                                             Vector<T> (&sums)[Count]) {
  for (int i = 0; i < Count; ++i) sums[i] = fma(broadcast(a[i]), column, sums[i]);
}
/// The next columns of the rows b, as many as a vector has lanes; a is packed (k, Count). Meanwhile half
/// as many cache lines are fetched from `ahead` on.
template <class T, int Count>
[[gnu::always_inline]] inline void thin_square(const T* a, EvenRows<T>& b, const T*& ahead,
                                               Vector<T> (&sums)[Count]) {
  constexpr int kLine = 64 / sizeof(T), kFetched = kLanesOf<T> * kLanesOf<T> / kLine / 2;
  Vector<T> t[kLanesOf<T>];
  transpose_square(b, t);
  b.skip(kLanesOf<T>);
  for (int s = 0; s < kLanesOf<T>; ++s) {
    if (s < kFetched) __builtin_prefetch(ahead + s * kLine, 0, 3);
    thin_term<T, Count>(a + s * Count, t[s], sums);
  }
  ahead += kFetched * kLine;
}
/// Reads one number of each cache line of [from, to).
template <class T>
[[gnu::always_inline]] inline void touch_lines(const T* from, const T* to) {
  for (; from < to; from += 64 / sizeof(T))
    static_cast<void>(*static_cast<const volatile T*>(from));
}
/// The next columns, at most as many as a vector has lanes, written down one after the other.
template <class T>
[[gnu::noinline]] void copy_columns(EvenRows<T>& b, int64_t columns, T* to) {
  if (columns == kLanesOf<T>) {
    Vector<T> t[kLanesOf<T>];
    transpose_square(b, t);
    for (int s = 0; s < kLanesOf<T>; ++s) store(to + s * kLanesOf<T>, t[s]);
  } else {
    for (int64_t s = 0; s < columns; ++s)
      for (int i = 0; i < kLanesOf<T>; ++i) to[s * kLanesOf<T> + i] = b.at(i)[s];
  }
  b.skip(columns);
}

/// Where a tile goes: columns [j, j + columns) of C, after `skip` that the tile before has done.
struct ThinPlace {
  int64_t j, skip, columns;
};
/// Writes the sums of the block of depth that ends before term `end`.
template <class T, int Count>
[[gnu::noinline]] void thin_write(const Gemm<T>& g, const ThinPlace& at, int64_t begin, int64_t end,
                                  const T* sums) {
  const T* bias = end == g.k && g.bias != nullptr ? g.bias + at.j : nullptr;
  const TileOut<T> out{g.c + at.j, g.ldc, at.columns, g.alpha, begin > 0 || g.beta != 0, bias, {}};
  const int rows = static_cast<int>(smaller(g.m, Count));
  write_edge<T>(rows, kTileVectors, sums + at.skip, out);
  if (bias != nullptr) add_bias<T>(rows, out);
}

/// One tile of columns, all of k, block of depth by block of depth. The last tile ends where B ends
/// and leaves out the columns that the one before it has done.
///
/// Rows side by side are no stream that the machine would fetch ahead, so the next tile is fetched in
/// the order in which it lies in memory: the first half line by line between the sums (faster, and
/// requests are dropped), the rest by reading it, at the speed of memory. What is read so waits in
/// the second-level cache.
template <class T, int Count>
void thin_tile(const Gemm<T>& g, const T* a, int64_t j) {
  constexpr int64_t n = kLanesOf<T>, kColumns = kTileVectors * n;
  const int64_t step = gemm_depth(g.k), first = smaller(j, g.n - kColumns);
  const ThinPlace place{j, j - first, kColumns - (j - first)};
  EvenRows<T> b[] = {{g.b + first * g.ldb, g.ldb}, {g.b + (first + n) * g.ldb, g.ldb}};
  const T* ahead = g.b + (first + kColumns) * g.ldb;
  Vector<T> sums[kTileVectors][Count] = {};
  int64_t p = 0, begin = 0, end = smaller(step, g.k);
  const auto finish_block = [&] {
    T copy[Count * kColumns + kColumns];
    for (int i = 0; i < Count; ++i)
      for (int v = 0; v < kTileVectors; ++v) {
        store(copy + i * kColumns + v * n, sums[v][i]);
        sums[v][i] = Vector<T>{};
      }
    thin_write<T, Count>(g, place, begin, end, copy);
    begin = end, end = smaller(end + step, g.k);
  };
  while (begin < g.k) {
    for (; p + n <= end; p += n) {  // written out: of a loop the compiler keeps the sums in memory
      static_assert(kTileVectors == 2);
      thin_square<T, Count>(a + p * Count, b[0], ahead, sums[0]);
      thin_square<T, Count>(a + p * Count, b[1], ahead, sums[1]);
    }
    T copies[kTileVectors][n * n];  // of the columns among which the block ends
    const int64_t columns = smaller(n, g.k - p);
    if (p < end)
      for (int v = 0; v < kTileVectors; ++v) copy_columns(b[v], columns, copies[v]);
    const int64_t stop = p < end ? p + columns : p;
    for (int64_t s = 0; p < stop; ++p, ++s) {
      if (p == end) finish_block();
      for (int v = 0; v < kTileVectors; ++v)
        thin_term<T, Count>(a + p * Count, load(copies[v] + s * n), sums[v]);
    }
    if (p == end) finish_block();
  }
  const int64_t next_end = first + 2 * kColumns;
  if (next_end <= g.n) touch_lines(ahead, g.b + (next_end - 1) * g.ldb + g.k);
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
