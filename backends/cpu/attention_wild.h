#pragma once
// NaN and infinity in attention. What is hidden has the probability 0, and so adds 0 to a product,
// but 0 times such a number is NaN. Packed rows are therefore looked through once: such numbers are
// taken out of the products and added for those that see them. All others go the fast way.
#include "backends/cpu/attention_tile.h"

namespace tally::cpu {
namespace {

/// 0 where a number is finite, else NaN.
[[gnu::always_inline]] inline F32 wildness(F32 x) { return x * 0.0f; }
inline bool is_wild(float x) { return x - x != 0; }
inline bool any_wild(F32 found) { return sum(found) != 0; }

/// Which rows, of a block of keys or of all queries of a call, hold one that was taken out.
struct WildRows {
  bool any = false, row[kAttentionQueries] = {};
};

/// Takes them out of rows [first, last) of a packed panel whose rows are `width` long.
inline void take_out_wild(float* panel, int64_t first, int64_t last, int64_t width,
                          WildRows& wild) {
  F32 found{};
  for (float* p = panel + first * width; p < panel + last * width; p += kLanes)
    found += wildness(load(p));
  if (!any_wild(found)) return;
  wild.any = true;
  for (int64_t n = first; n < last; ++n) {
    for (float* p = panel + n * width; p < panel + (n + 1) * width; p += kLanes) {
      const F32 x = load(p), w = wildness(x);
      wild.row[n] |= any_wild(w);
      store(p, select(w == 0.0f, x, F32{}));
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
