#pragma once
// NaN and infinity in attention. What is hidden has the probability 0, and so adds 0 to a product,
// but 0 times such a number is NaN. Packed rows are therefore looked through once: such numbers are
// taken out of the products and added for those that see them. All others go the fast way.
#include "backends/cpu/attention_tile.h"

namespace tally::cpu {
namespace {

/// Stays 0 while all numbers are finite, and becomes NaN with one that is not.
[[gnu::always_inline]] inline F32 add_wildness(F32 x, F32 found) { return fma(x, F32{}, found); }
inline bool is_wild(float x) { return x - x != 0; }
inline bool any_wild(F32 found) { return sum(found) != 0; }

/// Which rows, of a block of keys or of all queries of a call, hold one that was taken out.
struct WildRows {
  bool any = false, row[kAttentionQueries] = {};
};

/// Takes them out of rows [first, last) of a packed panel whose rows are `width` long.
inline void take_out_wild(float* panel, int64_t first, int64_t last, int64_t width,
                          WildRows& wild) {
  F32 found[4] = {};  // four sums, which need not wait for each other
  const float *p = panel + first * width, *end = panel + last * width;
  for (; p + 4 * kLanes <= end; p += 4 * kLanes)
    for (int i = 0; i < 4; ++i) found[i] = add_wildness(load(p + i * kLanes), found[i]);
  for (; p < end; p += kLanes) found[0] = add_wildness(load(p), found[0]);
  if (!any_wild((found[0] + found[1]) + (found[2] + found[3]))) return;
  wild.any = true;
  for (int64_t n = first; n < last; ++n) {
    for (float* row = panel + n * width; row < panel + (n + 1) * width; row += kLanes) {
      const F32 x = load(row), w = add_wildness(x, F32{});
      wild.row[n] |= any_wild(w);
      store(row, select(w == 0.0f, x, F32{}));
    }
  }
}

/// to (size, kPanel) += what was taken out of rows of a head of keys, times the lanes' weights, for
/// those that see the key.
inline void add_wild_keys(const PanelView& at, const Rows& rows, const WildRows& wild,
                          const HeadIn& from, int64_t size, const float* weights, float* to) {
  for (int64_t n = rows.first; n < rows.last; ++n) {
    if (!wild.row[n]) continue;
    SeenLanes lanes;
    see_row(at, n, lanes);
    for (int64_t d = 0; d < size; ++d) {
      const float x = from.data[(at.key0 + n) * from.row + d * from.column];
      if (!is_wild(x)) continue;
      for (int64_t j = 0; j < kTileVectors; ++j) {
        float* sums = to + d * kPanel + j * kLanes;
        const F32 share = load(weights + n * kPanel + j * kLanes) * x;
        store(sums, load(sums) + select(lanes[j], share, F32{}));
      }
    }
  }
}

/// to (keys, width) += the panel's weights (keys, kPanel) times what was taken out of rows of a head
/// of queries, for the keys that they see.
inline void add_wild_queries(const PanelView& at, int64_t count, const WildRows& wild,
                             const HeadIn& from, int64_t size, const float* weights, float* to,
                             int64_t width) {
  for (int64_t n = 0; n < count; ++n) {
    if ((at.look.seen >> (n / kTileRows) & 1) == 0) continue;
    SeenLanes lanes;
    see_row(at, n, lanes);
    for (int64_t t = 0; t < at.queries; ++t) {
      if (!wild.row[at.t0 + t] || lanes[t / kLanes][t % kLanes] == 0) continue;
      for (int64_t d = 0; d < size; ++d) {
        const float x = from.data[(at.t0 + t) * from.row + d * from.column];
        if (is_wild(x)) to[n * width + d] += weights[n * kPanel + t] * x;
      }
    }
  }
}

/// Probabilities and gradients of scores become 0 where the key is not seen: 0 times NaN is NaN.
inline void clear_hidden(const PanelView& at, const Rows& rows, float* p, float* ds) {
  for (int64_t n = rows.first; n < rows.last; ++n) {
    SeenLanes lanes;
    see_row(at, n, lanes);
    for (int64_t j = 0; j < kTileVectors; ++j) {
      const int64_t i = n * kPanel + j * kLanes;
      store(p + i, select(lanes[j], load(p + i), F32{}));
      store(ds + i, select(lanes[j], load(ds + i), F32{}));
    }
  }
}

}  // namespace
}  // namespace tally::cpu
