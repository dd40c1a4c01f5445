#pragma once
// Products of matrices: the order of loops of Goto & van de Geijn 2008 (Anatomy of High-Performance
// Matrix Multiplication) and Van Zee & van de Geijn 2015 (BLIS), seen from one thread: a block of
// columns of B stays packed in the second-level cache, groups of rows of A pass by it.
//
// Each element of C is a sum over k in ascending order: fused multiply-adds within a block of
// gemm_depth(k), blocks added up in C. The order depends on k alone, not on m, n, tiles or threads,
// so a row of C has the same bits computed alone (decoding) or among a thousand (training).
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
  int64_t offset(int64_t q) const { return row(q) * depth + q * kLanesOf<T>; }
};

inline constexpr int64_t kStripRows = 8;  // of a straight copy: the rows read together

/// Packs op(A)[i0 .. i0 + rows)[p0 .. p0 + depth).
template <class T>
void pack_a(const Gemm<T>& g, int64_t i0, int64_t p0, const RowPanels<T>& panels, T* to) {
  if (!g.trans_a) {
    for (int64_t q = 0; q < panels.count; ++q)
      pack_transposed(g.a + (i0 + panels.row(q)) * g.lda + p0, g.lda, panels.height(q),
                      panels.depth, to + panels.offset(q), panels.height(q));
    return;
  }
  for (int64_t p = 0; p < panels.depth; p += kStripRows)
    for (int64_t q = 0; q < panels.count; ++q) {
      const int64_t height = panels.height(q);
      pack_straight(g.a + (p0 + p) * g.lda + i0 + panels.row(q), g.lda,
                    smaller(kStripRows, panels.depth - p), height,
                    to + panels.offset(q) + p * height, height);
    }
}

template <class T>
inline constexpr int64_t kTileColumns = kTileVectors* kLanesOf<T>;

/// Width of the packed panel that holds `columns` columns: one vector if that is enough.
template <class T>
int64_t panel_width(int64_t columns) {
  return columns > kLanesOf<T> ? kTileColumns<T> : kLanesOf<T>;
}
/// Columns of a packed block of B, padding included.
template <class T>
int64_t packed_columns(int64_t columns) {
  const int64_t last = columns % kTileColumns<T>;
  return columns - last + (last == 0 ? 0 : panel_width<T>(last));
}

/// Packs op(B)[p0 .. p0 + depth)[j0 .. j1) as panels (depth, width), one after the other.
template <class T>
void pack_b(const Gemm<T>& g, int64_t p0, int64_t depth, int64_t j0, int64_t j1, T* to) {
  const int64_t strip = g.trans_b ? depth : kStripRows;
  for (int64_t p = 0; p < depth; p += strip)
    for (int64_t j = j0; j < j1; j += kTileColumns<T>) {
      const int64_t columns = smaller(j1 - j, kTileColumns<T>), width = panel_width<T>(columns);
      T* panel = to + (j - j0) * depth + p * width;
      if (g.trans_b)
        pack_transposed(g.b + j * g.ldb + p0, g.ldb, columns, depth, panel, width);
      else
        pack_straight(g.b + (p0 + p) * g.ldb + j, g.ldb, smaller(strip, depth - p), columns, panel,
                      width);
    }
}

/// One group of packed rows against a block of packed columns.
template <class T>
void multiply_group(const Gemm<T>& g, int64_t i0, int64_t p0, const RowPanels<T>& panels,
                    int64_t j0, int64_t j1, const T* packed_a, const T* packed_b) {
  const int64_t depth = panels.depth;
  const bool last = p0 + depth == g.k;
  TileOut<T> out{nullptr, g.ldc, 0, g.alpha, p0 > 0 || g.beta != 0, nullptr};
  for (int64_t q = 0; q < panels.count; ++q) {  // this panel of A stays in the first-level cache
    const int64_t height = panels.height(q);
    const TileFunction<T> full = tile_of<T, 2>(height), narrow = tile_of<T, 1>(height);
    for (int64_t j = j0; j < j1; j += kTileColumns<T>) {
      out.c = g.c + (i0 + panels.row(q)) * g.ldc + j;
      out.columns = smaller(j1 - j, kTileColumns<T>);
      out.bias = last && g.bias != nullptr ? g.bias + j : nullptr;
      const TileFunction<T> run = out.columns > kLanesOf<T> ? full : narrow;
      run(depth, packed_a + panels.offset(q), packed_b + (j - j0) * depth, out);
    }
  }
}

/// One block of C. `scratch` is the thread's arena: kPackedA elements, then packed B.
template <class T>
void gemm_block(const Gemm<T>& g, const GemmBlock& block, T* scratch) {
  const int64_t step = gemm_depth(g.k), columns = packed_columns<T>(block.j1 - block.j0);
  T* a_end = scratch;
  for (int64_t p = 0; p < g.k; p += step) {
    const int64_t depth = smaller(step, g.k - p);
    T* packed_b = scratch + kPackedA + (block.keep_b ? p * columns : 0);
    if (!block.have_b) pack_b(g, p, depth, block.j0, block.j1, packed_b);
    for (int64_t i = block.i0; i < block.i1; i += kGemmGroupRows) {
      const RowPanels<T> panels(smaller(kGemmGroupRows, block.i1 - i), depth);
      T* packed_a = block.keep_a ? a_end : scratch;
      if (!block.have_a) pack_a(g, i, p, panels, packed_a);
      if (block.keep_a) a_end += panels.offset(panels.count);
      multiply_group(g, i, p, panels, block.j0, block.j1, packed_a, packed_b);
    }
  }
}

}  // namespace
}  // namespace tally::cpu
