#pragma once
// Products of matrices, the parts that depend on the instruction set; gemm.cpp has the loops around
// them.
//
// Each element of C is a sum over k in ascending order: fused multiply-adds within a block of
// gemm_depth(k), blocks added up in C. The order depends on k alone, not on m, n, tiles or threads,
// so a row of C has the same bits among nine and among a thousand. Fewer rows: few_rows_kernels.h.
#include "backends/cpu/gemm_args.h"
#include "backends/cpu/gemm_pack.h"
#include "backends/cpu/gemm_tile.h"

namespace tally::cpu {
namespace {

/// Rows of one group, cut into panels of nearly equal height: 16 rows are 8 + 8, not 14 + 2.
template <class T>
struct RowPanels {
  int64_t rows, depth, count;
  RowPanels(int64_t r, int64_t d) : rows(r), depth(d), count((r + kTileRows - 1) / kTileRows) {}
  int64_t row(int64_t q) const { return rows * q / count; }
  int64_t height(int64_t q) const { return row(q + 1) - row(q); }
  int64_t offset(int64_t q) const { return q * depth * kPanelStride<T>; }
};

inline constexpr int64_t kStripRows = 8;  // of a straight copy: the rows read together

/// Packs op(A)[i0 .. i0 + rows)[p0 .. p0 + depth), rows <= kGemmGroupRows.
template <class T>
void gemm_pack_a(const Gemm<T>& g, int64_t i0, int64_t rows, int64_t p0, int64_t depth, T* to) {
  const RowPanels<T> panels(rows, depth);
  if (!g.trans_a) {
    for (int64_t q = 0; q < panels.count; ++q) {
      // Rows of the next panel fill the lanes that this one leaves: no case of its own for them.
      const int64_t i = i0 + panels.row(q), rows_there = smaller(g.m - i, kPanelStride<T>);
      pack_transposed(g.a + i * g.lda + p0, g.lda, rows_there, depth, to + panels.offset(q),
                      kPanelStride<T>);
    }
    return;
  }
  for (int64_t p = 0; p < depth; p += kStripRows)
    for (int64_t q = 0; q < panels.count; ++q)
      pack_straight(g.a + (p0 + p) * g.lda + i0 + panels.row(q), g.lda,
                    smaller(kStripRows, depth - p), panels.height(q),
                    to + panels.offset(q) + p * kPanelStride<T>, kPanelStride<T>);
}

template <class T>
inline constexpr int64_t kTileColumns = kTileVectors* kLanesOf<T>;

/// Packs op(B)[p0 .. p0 + depth)[j0 .. j1) as panels (depth, width), one after the other; the last
/// one is a single vector wide if that holds it.
template <class T>
void gemm_pack_b(const Gemm<T>& g, int64_t j0, int64_t j1, int64_t p0, int64_t depth, T* to) {
  const int64_t strip = g.trans_b ? depth : kStripRows;
  for (int64_t p = 0; p < depth; p += strip)
    for (int64_t j = j0; j < j1; j += kTileColumns<T>) {
      const int64_t columns = smaller(j1 - j, kTileColumns<T>);
      const int64_t width = columns > kLanesOf<T> ? kTileColumns<T> : kLanesOf<T>;
      T* panel = to + (j - j0) * depth + p * width;
      if (g.trans_b)
        pack_transposed(g.b + j * g.ldb + p0, g.ldb, columns, depth, panel, width);
      else
        pack_straight(g.b + (p0 + p) * g.ldb + j, g.ldb, smaller(strip, depth - p), columns, panel,
                      width);
    }
}

/// What tile number t of a step fetches of the part of A that is packed next: two rows as stored,
/// or the same cache line of many rows when they are short.
template <class T>
Ahead ahead_of(const Gemm<T>& g, const GemmBlock& next, int64_t t, const T* none) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t rows = next.i1 - next.i0, steps = next.depth / kAheadTerms;
  const T *first = none, *second = none;
  int64_t step = 0;
  if (!g.trans_a && 2 * t < rows) {
    first = g.a + (next.i0 + 2 * t) * g.lda + next.p0;
    second = 2 * t + 1 < rows ? first + g.lda : first;
    step = kLine;
  } else if (g.trans_a) {
    const int64_t lines = rows / kLine + 2, p = t / lines * 2 * steps;
    if (p + 2 * steps <= next.depth) {
      first = g.a + (next.p0 + p) * g.lda + next.i0 + smaller(t % lines * kLine, rows - 1);
      second = first + steps * g.lda;
      step = g.lda;
    }
  }
  return {reinterpret_cast<const char*>(first), reinterpret_cast<const char*>(second),
          step * static_cast<int64_t>(sizeof(T))};
}

/// Packed rows against packed columns, added to C or written there; meanwhile the rows of A that
/// will be packed `next` are fetched.
template <class T, class Kind = Numbers<T>>
void gemm_multiply(const Gemm<T>& g, const GemmBlock& block, const GemmBlock& next,
                   const T* packed_a, const T* packed_b) {
  const RowPanels<T> panels(block.i1 - block.i0, block.depth);
  const bool last = block.p0 + block.depth == g.k;
  TileOut<T> out{nullptr, g.ldc, 0, g.alpha, block.p0 > 0 || g.beta != 0, nullptr, {}};
  int64_t t = 0;
  for (int64_t q = 0; q < panels.count; ++q) {  // this panel of A stays in the first-level cache
    const int64_t height = panels.height(q);
    const TileFunction<T> full = tile_of<T, 2, Kind>(height), narrow = tile_of<T, 1, Kind>(height);
    for (int64_t j = block.j0; j < block.j1; j += kTileColumns<T>, ++t) {
      out.c = g.c + (block.i0 + panels.row(q)) * g.ldc + j;
      out.columns = smaller(block.j1 - j, kTileColumns<T>);
      out.bias = last && g.bias != nullptr ? g.bias + j : nullptr;
      out.ahead = ahead_of(g, next, t, packed_a);
      const TileFunction<T> run = out.columns > kLanesOf<T> ? full : narrow;
      run(block.depth, packed_a + panels.offset(q), packed_b + (j - block.j0) * block.depth, out);
    }
  }
}

}  // namespace
}  // namespace tally::cpu
