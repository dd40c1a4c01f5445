#pragma once
// Numbers that are kept in bf16: read into vectors of f32, where all arithmetic happens, and rounded
// once when they are written.
#include "backends/cpu/half_args.h"
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

[[gnu::always_inline]] inline F32 load_some(const uint16_t* p, All) { return load_bf16(p); }
[[gnu::always_inline]] inline F32 load_some(const uint16_t* p, int64_t n) {
  uint16_t lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, static_cast<size_t>(n) * sizeof(uint16_t));
  return load_bf16(lanes);
}

/// y[i] = x[i].
inline void widen(int64_t n, const uint16_t* x, float* y) {
  each_vector(n, [&](int64_t i, auto lanes) { store_some(y + i, load_some(x + i, lanes), lanes); });
}

/// y[i] (+)= x[i], rounded.
inline void narrow(int64_t n, const float* x, uint16_t* y, bool add) {
  each_vector(n, [&](int64_t i, auto lanes) {
    const F32 v = add ? load_some(y + i, lanes) + load_some(x + i, lanes) : load_some(x + i, lanes);
    uint16_t rounded[kLanes];
    store_bf16(rounded, v);
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    __builtin_memcpy(y + i, rounded, static_cast<size_t>(count) * sizeof(uint16_t));
  });
}

/// Sums of one element, which hide the latency of the multiply-add, and rows of x that share a row of
/// w.
inline constexpr int kHalfSums = 4;
#if defined(__AVX512F__)
inline constexpr int kHalfRows = 4;
#else
inline constexpr int kHalfRows = 2;
#endif

/// Rows [i0, i0 + Count) of x against row j of w. Rows of w are read one after the other, as they lie
/// in memory. Every sum runs down the lanes in an order that the depth alone decides: a row alone
/// (decoding) has the bits of a row among a thousand.
template <int Count>
[[gnu::always_inline]] inline void half_tile(const HalfProduct& g, int64_t i0, int64_t j) {
  constexpr int kStep = kHalfSums * kLanes, kLine = 32, kAhead = 4096;  // elements
  F32 sums[Count][kHalfSums] = {};
  const float* x = g.x + i0 * g.depth;
  const uint16_t* w = g.w + j * g.w_row;
  int64_t p = 0;
  for (; p + kStep <= g.depth; p += kStep) {
    for (int l = 0; l < kStep / kLine; ++l) __builtin_prefetch(w + p + kAhead + l * kLine, 0, 3);
    for (int k = 0; k < kHalfSums; ++k) {
      const F32 column = load_bf16(w + p + k * kLanes);
      for (int i = 0; i < Count; ++i)
        sums[i][k] = fma(load(x + i * g.depth + p + k * kLanes), column, sums[i][k]);
    }
  }
  each_vector(g.depth - p, [&](int64_t d, auto lanes) {
    const F32 column = load_some(w + p + d, lanes);
    for (int i = 0; i < Count; ++i)
      sums[i][0] = fma(load_some(x + i * g.depth + p + d, lanes), column, sums[i][0]);
  });
  for (int i = 0; i < Count; ++i) {
    float y = sum((sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]));
    if (g.b != nullptr) y += load_some(g.b + j, int64_t{1})[0];
    narrow(1, &y, g.y + (i0 + i) * g.y_row + j, g.add);
  }
}

inline void half_product(const HalfProduct& g) {
  for (int64_t j = g.begin; j < g.end; ++j) {
    int64_t i = 0;
    for (; i + kHalfRows <= g.rows; i += kHalfRows) half_tile<kHalfRows>(g, i, j);
    for (; i < g.rows; ++i) half_tile<1>(g, i, j);
  }
}

}  // namespace
}  // namespace tally::cpu
