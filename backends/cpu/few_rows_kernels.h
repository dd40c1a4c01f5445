#pragma once
// A few rows times a transposed matrix, as in decoding: every weight is read once, at the speed of
// memory, so nothing is packed and rows of w are read one after the other, as they lie there.
//
// An element is kSums sums that run down the lanes, which the depth alone decides: its bits depend
// neither on threads nor on the rows beside it, but they are not those of gemm_kernels.h, where an
// element is one sum down k. Keeping that order would take 64 shuffles a kilobyte of weights and
// rows side by side, which no CPU fetches ahead (docs/performance.md has what it costs).
#include "backends/cpu/few_rows_args.h"
#include "backends/cpu/half_kernels.h"

namespace tally::cpu {
namespace {

/// Sums of one element, which hide the latency of the multiply-add, and rows of x that share a row
/// of w.
inline constexpr int kFewSums = 4;
#if defined(__AVX512F__)
inline constexpr int kFewShared = 4;
#else
inline constexpr int kFewShared = 2;
#endif

/// y (+)= v.
inline void put_one(float v, float* y, bool add) { *y = add ? *y + v : v; }
inline void put_one(float v, uint16_t* y, bool add) { narrow(1, &v, y, add); }

/// Rows [i0, i0 + Count) of x against row j of w.
template <int Count, class W>
[[gnu::always_inline]] inline void few_rows_tile(const FewRows<W>& g, int64_t i0, int64_t j) {
  constexpr int64_t kStep = kFewSums * kLanes, kLine = 64 / sizeof(W), kAhead = 8192 / sizeof(W);
  F32 sums[Count][kFewSums] = {};
  const float* x = g.x + i0 * g.x_row;
  const W* w = g.w + j * g.w_row;
  int64_t p = 0;
  for (; p + kStep <= g.depth; p += kStep) {
    for (int64_t l = 0; l < kStep; l += kLine) __builtin_prefetch(w + p + kAhead + l, 0, 3);
    for (int k = 0; k < kFewSums; ++k) {
      const F32 column = load_some(w + p + k * kLanes, All{});
      for (int i = 0; i < Count; ++i)
        sums[i][k] = fma(load(x + i * g.x_row + p + k * kLanes), column, sums[i][k]);
    }
  }
  each_vector(g.depth - p, [&](int64_t d, auto lanes) {
    const F32 column = load_some(w + p + d, lanes);
    for (int i = 0; i < Count; ++i)
      sums[i][0] = fma(load_some(x + i * g.x_row + p + d, lanes), column, sums[i][0]);
  });
  for (int i = 0; i < Count; ++i) {
    float y = sum((sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]));
    if (g.b != nullptr) y += load_some(g.b + j, int64_t{1})[0];
    put_one(y, g.y + (i0 + i) * g.y_row + j, g.add);
  }
}

template <class W>
inline void few_rows(const FewRows<W>& g) {
  for (int64_t j = g.begin; j < g.end; ++j) {
    int64_t i = 0;
    for (; i + kFewShared <= g.rows; i += kFewShared) few_rows_tile<kFewShared>(g, i, j);
    for (; i < g.rows; ++i) few_rows_tile<1>(g, i, j);
  }
}

}  // namespace
}  // namespace tally::cpu
