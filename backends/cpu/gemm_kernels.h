#pragma once
// Products of matrices: packing and the micro-kernel, in the order of loops of Goto & van de
// Geijn 2008 (Anatomy of High-Performance Matrix Multiplication) and BLIS.
//
// Each element of C is the sum over k in ascending order, fused multiply-adds within blocks of
// gemm_depth(k), blocks added up in C. This order depends on k alone: not on m, n, the tiles,
// the threads, or the vector width. So a row of C has the same bits whether it is computed alone
// (decoding) or among a thousand (training).
#include "backends/cpu/gemm_args.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_transpose.h"

namespace tally::cpu {
namespace {

// ---- the micro-kernel: a tile of kTileRows x kTileColumns of C in registers

#if defined(__AVX512F__)
inline constexpr int kTileRows = 14;  // 28 sums, 2 vectors of B, 1 broadcast: 31 of 32 registers
#else
inline constexpr int kTileRows = 6;  // 12 sums, 2 vectors of B, 1 broadcast: 15 of 16 registers
#endif
inline constexpr int kTileColumns = 2 * kLanes;

/// Where a tile goes: rows of C, how many of its columns exist, and what is added.
struct TileOut {
  float* c;
  int64_t ldc, columns;
  float alpha;
  bool accumulate;    // add to what C holds; otherwise C is not read
  const float* bias;  // at the tile's first column, or null
};

/// sums[i][j] = sum over p of a[p][i] b[p][j lanes]; a is packed (depth, Rows), b is packed
/// (depth, Vectors * kLanes). The building block for any fused kernel: it touches no memory but
/// the two panels.
template <int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_panels(int64_t depth, const float* a, const float* b,
                                                   F32 (&sums)[Rows][Vectors]) {
  for (int64_t p = 0; p < depth; ++p, a += Rows, b += Vectors * kLanes) {
    F32 vb[Vectors];
    for (int j = 0; j < Vectors; ++j) vb[j] = load(b + j * kLanes);
    for (int i = 0; i < Rows; ++i) {
      const F32 va = broadcast(a[i]);
      for (int j = 0; j < Vectors; ++j) sums[i][j] = fma(va, vb[j], sums[i][j]);
    }
  }
}

template <int Rows, int Vectors>
[[gnu::always_inline]] inline void write_tile(const F32 (&sums)[Rows][Vectors],
                                              const TileOut& out) {
  const F32 alpha = broadcast(out.alpha);
  for (int j = 0; j < Vectors; ++j) {
    const int64_t left = out.columns - j * kLanes;
    const F32 bias = out.bias == nullptr ? F32{} : load_first(out.bias + j * kLanes, left);
    for (int i = 0; i < Rows; ++i) {
      float* c = out.c + i * out.ldc + j * kLanes;
      F32 v = sums[i][j] * alpha;
      if (left >= kLanes) {
        if (out.accumulate) v += load(c);
        store(c, out.bias == nullptr ? v : v + bias);
      } else if (left > 0) {
        if (out.accumulate) v += load_first(c, left);
        store_first(c, out.bias == nullptr ? v : v + bias, left);
      }
    }
  }
}

template <int Rows, int Vectors>
[[gnu::noinline]] void tile(int64_t depth, const float* a, const float* b, const TileOut& out) {
  for (int i = 0; i < Rows; ++i) __builtin_prefetch(out.c + i * out.ldc, 1);
  for (int i = 0; i < Rows; ++i) __builtin_prefetch(out.c + i * out.ldc + kLanes, 1);
  F32 sums[Rows][Vectors];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j) sums[i][j] = F32{};
  multiply_panels<Rows, Vectors>(depth, a, b, sums);
  write_tile<Rows, Vectors>(sums, out);
}

using TileFunction = void (*)(int64_t, const float*, const float*, const TileOut&);

/// The tile for 1 .. kTileRows rows and one or two vectors of columns.
template <int Vectors>
inline TileFunction tile_for(int64_t rows) {
  static constexpr TileFunction kTiles[] = {
      tile<1, Vectors>,  tile<2, Vectors>,  tile<3, Vectors>,  tile<4, Vectors>,
      tile<5, Vectors>,  tile<6, Vectors>,
#if defined(__AVX512F__)
      tile<7, Vectors>,  tile<8, Vectors>,  tile<9, Vectors>,  tile<10, Vectors>,
      tile<11, Vectors>, tile<12, Vectors>, tile<13, Vectors>, tile<14, Vectors>,
#endif
  };
  return kTiles[rows - 1];
}

// ---- packing

/// to[c * width + r] = from[r * ld + c], zero for rows <= r < width.
inline void pack_transposed(const float* from, int64_t ld, int64_t rows, int64_t columns, float* to,
                            int64_t width) {
  for (int64_t r = 0; r < width; r += kLanes) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      const int64_t left = columns - c;
      F32 v[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const float* row = from + (r + i) * ld + c;
        if (r + i >= rows) v[i] = F32{};
        else v[i] = left >= kLanes ? load(row) : load_first(row, left);
      }
      transpose(v);
      float* out = to + c * width + r;
      // A store may run over the panel's edge: the next ones overwrite it, or the buffer's slack.
      for (int i = 0; i < kLanes && i < left; ++i, out += width) store(out, v[i]);
    }
  }
}

/// to[r * width + c] = from[r * ld + c], zero for columns <= c < width.
inline void pack_straight(const float* from, int64_t ld, int64_t rows, int64_t columns, float* to,
                          int64_t width) {
  for (int64_t r = 0; r < rows; ++r, from += ld, to += width)
    for (int64_t c = 0; c < width; c += kLanes)
      store_first(to + c, load_first(from + c, columns > c ? columns - c : 0), width - c);
}

inline int64_t panel_width(int64_t columns) {
  return columns > kLanes ? kTileColumns : kLanes;
}

/// Packs rows [p0, p0 + depth) of op(B), columns [j0, j1), as panels of kTileColumns columns
/// (the last one of kLanes when that holds it), each (depth, width).
inline void pack_b(const Gemm<float>& g, int64_t p0, int64_t depth, int64_t j0, int64_t j1,
                   float* to) {
  for (int64_t j = j0; j < j1; j += kTileColumns) {
    const int64_t columns = j1 - j < kTileColumns ? j1 - j : kTileColumns;
    const int64_t width = panel_width(columns);
    if (g.trans_b) pack_transposed(g.b + j * g.ldb + p0, g.ldb, columns, depth, to, width);
    else pack_straight(g.b + p0 * g.ldb + j, g.ldb, depth, columns, to, width);
    to += depth * width;
  }
}

/// Packs rows [i, i + rows) of op(A), columns [p0, p0 + depth), as one panel (depth, rows).
inline void pack_a(const Gemm<float>& g, int64_t i, int64_t rows, int64_t p0, int64_t depth,
                   float* to) {
  if (g.trans_a) pack_straight(g.a + p0 * g.lda + i, g.lda, depth, rows, to, rows);
  else pack_transposed(g.a + i * g.lda + p0, g.lda, rows, depth, to, rows);
}

// ---- the block

#ifndef GROUP
#define GROUP 8
#endif
#ifndef DEPTH
#define DEPTH 384
#endif
inline int64_t gemm_depth(int64_t k) {
  const int64_t blocks = (k + DEPTH - 1) / DEPTH;
  return (k + blocks - 1) / blocks;
}
inline int64_t padded(int64_t n){ int64_t r=n%kTileColumns; return n-r+(r==0?0:panel_width(r)); }

inline void multiply_group(const Gemm<float>& g, int64_t p0, int64_t depth, int64_t i0, int64_t i1, int64_t j0, int64_t j1, float*pa, const float*pb){
  const int64_t panels=(i1-i0+kTileRows-1)/kTileRows;
  const bool last = p0+depth==g.k;
  { float*to=pa; for(int64_t q=0;q<panels;q++){ int64_t r0=i0+(i1-i0)*q/panels, r1=i0+(i1-i0)*(q+1)/panels; pack_a(g,r0,r1-r0,p0,depth,to); to+=(r1-r0)*depth; } }
  TileOut out; out.ldc=g.ldc; out.alpha=g.alpha; out.accumulate = p0>0||g.beta!=0;
#if ORDER==0
  for(int64_t j=j0;j<j1;j+=kTileColumns){
    const int64_t cols=j1-j<kTileColumns?j1-j:kTileColumns;
    const float* b=pb+(j-j0)*depth; const float*a=pa;
    out.columns=cols; out.bias=last&&g.bias?g.bias+j:nullptr;
    for(int64_t q=0;q<panels;q++){ int64_t r0=i0+(i1-i0)*q/panels, r1=i0+(i1-i0)*(q+1)/panels;
      out.c=g.c+r0*g.ldc+j;
      (cols>kLanes?tile_for<2>(r1-r0):tile_for<1>(r1-r0))(depth,a,b,out);
      a+=(r1-r0)*depth;
    }
  }
#else
  const float*a=pa;
  for(int64_t q=0;q<panels;q++){ int64_t r0=i0+(i1-i0)*q/panels, r1=i0+(i1-i0)*(q+1)/panels;
  for(int64_t j=j0;j<j1;j+=kTileColumns){
    const int64_t cols=j1-j<kTileColumns?j1-j:kTileColumns;
    const float* b=pb+(j-j0)*depth; 
    out.columns=cols; out.bias=last&&g.bias?g.bias+j:nullptr;
      out.c=g.c+r0*g.ldc+j;
      (cols>kLanes?tile_for<2>(r1-r0):tile_for<1>(r1-r0))(depth,a,b,out);
    }
      a+=(r1-r0)*depth;
  }
#endif
}
inline void gemm_block(const Gemm<float>& g, GemmBlock t, float* scratch, bool whole, bool ready) {
  const int64_t step=gemm_depth(g.k);
  float*pa=scratch; float*pb=scratch+((GROUP*kTileRows*DEPTH+64)/64)*64;
  const int64_t cols=padded(t.j1-t.j0);
  if(whole&&!ready) for(int64_t p=0;p<g.k;p+=step) pack_b(g,p,step<g.k-p?step:g.k-p,t.j0,t.j1,pb+p*cols);
  for(int64_t p=0;p<g.k;p+=step){
    const int64_t depth=step<g.k-p?step:g.k-p;
    if(!whole) pack_b(g,p,depth,t.j0,t.j1,pb);
    for(int64_t i=t.i0;i<t.i1;i+=GROUP*kTileRows){
      int64_t e=i+GROUP*kTileRows<t.i1?i+GROUP*kTileRows:t.i1;
      multiply_group(g,p,depth,i,e,t.j0,t.j1,pa,whole?pb+p*cols:pb);
    }
  }
}

}  // namespace
}  // namespace tally::cpu
