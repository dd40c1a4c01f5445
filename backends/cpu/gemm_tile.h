#pragma once
// The micro-kernel: a tile of C in registers, from packed panels of A and B.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

#if defined(__AVX512F__)
inline constexpr int kTileRows = 14;  // 28 sums, 2 vectors of B, 1 broadcast: 31 of 32 registers
#else
inline constexpr int kTileRows = 6;  // 12 sums, 2 vectors of B, 1 broadcast: 15 of 16 registers
#endif
/// A packed panel of A has this many elements a term, whatever its height: whole vectors.
template <class T>
inline constexpr int kPanelStride = (kTileRows + kLanesOf<T> - 1) / kLanesOf<T>* kLanesOf<T>;
/// Vectors of columns in a full tile.
inline constexpr int kTileVectors = 2;

/// Two runs of memory that are wanted soon: while the sums go on, one cache line of each is fetched
/// in every kAheadTerms terms, so that the fetches never crowd out the loads of the panels.
struct Ahead {
  const char *first, *second;
  int64_t step;  // bytes from one line to the next
};
inline constexpr int64_t kAheadTerms = 16;

/// Where a tile goes and what is added to it.
template <class T>
struct TileOut {
  T* c;
  int64_t ldc, columns;  // how many columns of the tile exist
  T alpha;
  bool accumulate;  // add to what C holds; otherwise C is not read
  const T* bias;    // at the tile's first column, or null
  Ahead ahead;
};

/// What an element of the panels is: a number. bf16_kernels.h has another kind.
template <class T>
struct Numbers {
  using Columns = Vector<T>;
  [[gnu::always_inline]] static Columns columns(const T* b) { return load(b); }
  [[gnu::always_inline]] static Columns row(const T* a) { return broadcast(*a); }
  [[gnu::always_inline]] static Vector<T> add(Columns a, Columns b, Vector<T> sum) {
    return fma(a, b, sum);
  }
};

/// One term: sums[i][j] += a[i] b[j].
template <class T, int Rows, int Vectors, class Kind = Numbers<T>>
[[gnu::always_inline]] inline void multiply_term(const T* a, const T* b,
                                                 Vector<T> (&sums)[Rows][Vectors]) {
  typename Kind::Columns vb[Vectors];
  for (int j = 0; j < Vectors; ++j) vb[j] = Kind::columns(b + j * kLanesOf<T>);
  for (int i = 0; i < Rows; ++i) {
    const auto va = Kind::row(a + i);
    for (int j = 0; j < Vectors; ++j) sums[i][j] = Kind::add(va, vb[j], sums[i][j]);
  }
}

/// sums[i][j] += sum over p < depth of a[p][i] b[p][j]: a is packed (depth, Stride), b is packed
/// (depth, Columns) with Columns = Vectors * lanes. The building block of every fused product: it
/// touches no memory but the two panels. 28 independent sums hide the latency of the multiply-add.
template <class T, int Rows, int Vectors, int Stride = kPanelStride<T>>
[[gnu::always_inline]] inline void multiply_panels(int64_t depth, const T* a, const T* b,
                                                   Vector<T> (&sums)[Rows][Vectors]) {
  for (; depth > 0; --depth, a += Stride, b += Vectors * kLanesOf<T>)
    multiply_term<T, Rows, Vectors>(a, b, sums);
}

/// The same, fetching what is ahead.
template <class T, int Rows, int Vectors, class Kind>
[[gnu::always_inline]] inline void multiply_panels(int64_t depth, const T* a, const T* b,
                                                   Vector<T> (&sums)[Rows][Vectors], Ahead ahead) {
  constexpr int kStride = kPanelStride<T>, kWidth = Vectors * kLanesOf<T>;
  const T* end = a + depth * kStride;
  for (const T* stop = a + kAheadTerms * kStride; stop <= end; stop += kAheadTerms * kStride) {
    __builtin_prefetch(ahead.first, 0, 2);
    __builtin_prefetch(ahead.second, 0, 2);
    ahead.first += ahead.step, ahead.second += ahead.step;
    do {
      multiply_term<T, Rows, Vectors, Kind>(a, b, sums);
      a += kStride, b += kWidth;
      asm("" : "+r"(a));  // keeps this loop a loop: unrolled, all the tiles are 300 KB of code
    } while (a != stop);
  }
  for (; a != end; a += kStride, b += kWidth) multiply_term<T, Rows, Vectors, Kind>(a, b, sums);
}

/// A tile that lies inside C: every index is a constant, so the sums never leave the registers.
template <class T, int Rows, int Vectors>
[[gnu::always_inline]] inline void write_tile(const Vector<T> (&sums)[Rows][Vectors],
                                              const TileOut<T>& out) {
  const Vector<T> alpha = broadcast(out.alpha);
  if (out.accumulate) {
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Vectors; ++j) {
        T* c = out.c + i * out.ldc + j * kLanesOf<T>;
        store(c, fma(sums[i][j], alpha, load(c)));
      }
  } else {
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Vectors; ++j)
        store(out.c + i * out.ldc + j * kLanesOf<T>, sums[i][j] * alpha);
  }
}

/// A tile that C's right edge cuts. Same arithmetic.
template <class T>
[[gnu::noinline]] void write_edge(int rows, int vectors, const T* sums, const TileOut<T>& out) {
  const Vector<T> alpha = broadcast(out.alpha);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) {
      const int64_t at = j * kLanesOf<T>, left = out.columns - at;
      if (left <= 0) continue;
      T* c = out.c + i * out.ldc + at;
      const Vector<T> before = out.accumulate ? load_first(c, left) : Vector<T>{};
      const Vector<T> v = load(sums + (i * vectors + j) * kLanesOf<T>);
      store_first(c, out.accumulate ? fma(v, alpha, before) : v * alpha, left);
    }
}

template <class T>
[[gnu::noinline]] void add_bias(int rows, const TileOut<T>& out) {
  for (int i = 0; i < rows; ++i)
    for (int64_t j = 0; j < out.columns; j += kLanesOf<T>) {
      T* c = out.c + i * out.ldc + j;
      const int64_t left = out.columns - j;
      store_first(c, load_first(c, left) + load_first(out.bias + j, left), left);
    }
}

template <class T, int Rows, int Vectors, class Kind>
[[gnu::noinline]] void tile(int64_t depth, const T* a, const T* b, const TileOut<T>& out) {
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j) __builtin_prefetch(out.c + i * out.ldc + j * kLanesOf<T>, 1);
  Vector<T> sums[Rows][Vectors];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j) sums[i][j] = Vector<T>{};
  multiply_panels<T, Rows, Vectors, Kind>(depth, a, b, sums, out.ahead);
  if (out.columns >= Vectors * kLanesOf<T>) {
    write_tile<T, Rows, Vectors>(sums, out);
  } else {
    T copy[Rows * Vectors * kLanesOf<T>];
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Vectors; ++j) store(copy + (i * Vectors + j) * kLanesOf<T>, sums[i][j]);
    write_edge<T>(Rows, Vectors, copy, out);
  }
  if (out.bias != nullptr) add_bias<T>(Rows, out);
}

template <class T>
using TileFunction = void (*)(int64_t depth, const T* a, const T* b, const TileOut<T>& out);

/// The tile of 1 .. kTileRows rows.
template <class T, int Vectors, class Kind = Numbers<T>>
TileFunction<T> tile_of(int64_t rows) {
  static constexpr TileFunction<T> kTiles[] = {
    tile<T, 1, Vectors, Kind>,
    tile<T, 2, Vectors, Kind>,
    tile<T, 3, Vectors, Kind>,
    tile<T, 4, Vectors, Kind>,
    tile<T, 5, Vectors, Kind>,
    tile<T, 6, Vectors, Kind>,
#if defined(__AVX512F__)
    tile<T, 7, Vectors, Kind>,
    tile<T, 8, Vectors, Kind>,
    tile<T, 9, Vectors, Kind>,
    tile<T, 10, Vectors, Kind>,
    tile<T, 11, Vectors, Kind>,
    tile<T, 12, Vectors, Kind>,
    tile<T, 13, Vectors, Kind>,
    tile<T, 14, Vectors, Kind>,
#endif
  };
  return kTiles[rows - 1];
}

}  // namespace
}  // namespace tally::cpu
