#pragma once
// The backward pass of attention. The probabilities of a block come back from the scores and l. dq
// takes the transposed scores as they are; dk and dv add up over queries, so for them each tile of
// keys is turned once more, and neighbouring panels of the call that see it make one long sum.
#include "backends/cpu/attention_wild.h"

namespace tally::cpu {
namespace {

/// Keys in a block: four tiles with AVX-512, whose probabilities and gradients for all panels then
/// stay in the second-level cache.
inline constexpr int64_t kBackwardKeys = 56 / kTileRows * kTileRows;

/// Elements of a head as panels of columns, for products whose rows are keys.
struct Columns {
  int64_t count, width;  // width: of a row of all panels
  explicit Columns(int64_t size) : count((size + kPanel - 1) / kPanel), width(count * kPanel) {}
};

struct BackwardState {
  int64_t head, value, panels, queries;  // queries: rounded up to whole panels
  Tiles head_tiles;
  Columns head_columns, value_columns;
  // Of all queries: for scores (elements, lanes of queries) and for sums over queries (queries,
  // lanes of elements).
  float *q, *dy, *q_rows, *dy_rows;
  float *l, *mean, *dq;
  // Of the block: for scores, and for dq.
  float *k, *v, *k_rows;
  float *p, *ds, *factors;  // (panels, keys, kPanel)
  float *turned, *dk, *dv;  // (queries, kStride); (keys, width)
  float* buffer;
  float *bias, *bias_buffer;  // of a panel, where there is a bias or its gradient

  explicit BackwardState(const AttentionBackwardArgs& a)
      : head(a.rule.head_size),
        value(a.rule.value_size),
        panels((a.rule.queries + kPanel - 1) / kPanel),
        queries(panels * kPanel),
        head_tiles(head),
        head_columns(head),
        value_columns(value) {
    Arena arena{a.scratch};
    q = arena.take(queries * head);
    dy = arena.take(queries * value);
    q_rows = arena.take(queries * head_columns.width);
    dy_rows = arena.take(queries * value_columns.width);
    l = arena.take(queries);
    mean = arena.take(queries);
    dq = arena.take(panels * head_tiles.count * head_tiles.rows * kPanel);
    k = arena.take(kBackwardKeys / kTileRows * head * kStride);
    v = arena.take(kBackwardKeys / kTileRows * value * kStride);
    k_rows = arena.take(head_tiles.count * kBackwardKeys * kStride);
    p = arena.take(panels * kBackwardKeys * kPanel);
    ds = arena.take(panels * kBackwardKeys * kPanel);
    factors = a.rule.dropout > 0 ? arena.take(kBackwardKeys * kPanel) : nullptr;
    turned = arena.take(queries * kStride);
    dk = arena.take(kBackwardKeys * head_columns.width);
    dv = arena.take(kBackwardKeys * value_columns.width);
    buffer = arena.take(round_up(head > value ? head : value, kLanes) * kPanel);
    bias = a.rule.bias != nullptr ? arena.take(kBackwardKeys * kPanel) : nullptr;
    bias_buffer =
        a.dbias.data != nullptr ? arena.take(round_up(kBackwardKeys, kLanes) * kPanel) : nullptr;
  }
  int64_t dq_size() const { return head_tiles.count * head_tiles.rows * kPanel; }
};

/// mean[t] = dy[t] . y[t], and l without infinities: a query that saw nothing has p = 0 anyway.
inline void row_means(const AttentionBackwardArgs& a, const BackwardState& s) {
  for (int64_t t = 0; t < s.queries; ++t) {
    const int64_t row = smaller(t, a.rule.queries - 1);
    const float *dy = a.dy.data + row * a.dy.row, *y = a.y.data + row * a.y.row;
    F32 sums{};
    float rest = 0;
    if (a.dy.column == 1 && a.y.column == 1) {
      for (int64_t d = 0; d < s.value; d += kLanes)
        sums = fma(load_first(dy + d, s.value - d), load_first(y + d, s.value - d), sums);
    } else {
      for (int64_t d = 0; d < s.value; ++d) rest += dy[d * a.dy.column] * y[d * a.y.column];
    }
    s.mean[t] = sum(sums) + rest;
    const float l = a.l[row * a.l_step];
    s.l[t] = l == -__builtin_inff() ? 0 : l;
  }
}

/// What the products leave out: of the packed rows of q and dy, and of a block's rows of k.
struct BackwardWild {
  WildRows q, dy, k;
};

inline void pack_queries(const AttentionBackwardArgs& a, const BackwardState& s,
                         BackwardWild& wild) {
  const int64_t n = a.rule.queries;
  for (int64_t p = 0; p < s.panels; ++p) {
    const int64_t t = p * kPanel, rows = smaller(kPanel, n - t);
    pack_columns(a.q, t, rows, s.head, s.q + t * s.head, kPanel);
    pack_columns(a.dy, t, rows, s.value, s.dy + t * s.value, kPanel);
  }
  const auto rows = [&](const HeadIn& h, int64_t size, const Columns& columns, float* to,
                        WildRows& out) {
    for (int64_t c = 0; c < columns.count; ++c) {
      float* panel = to + c * kPanel * s.queries;
      pack_rows(h, 0, n, c * kPanel, smaller(kPanel, size - c * kPanel), panel, kPanel);
      take_out_wild(panel, 0, n, kPanel, out);
      for (float* end = panel + n * kPanel; end < panel + s.queries * kPanel; end += kLanes)
        store(end, F32{});
    }
  };
  rows(a.q, s.head, s.head_columns, s.q_rows, wild.q);
  rows(a.dy, s.value, s.value_columns, s.dy_rows, wild.dy);
}

inline void pack_keys(const AttentionBackwardArgs& a, const BackwardState& s, int64_t key0,
                      int64_t count, WildRows& wild) {
  for (int64_t n = 0; n < count; n += kTileRows) {
    const int64_t rows = smaller(kTileRows, count - n), tile = n / kTileRows * kStride;
    pack_columns(a.k, key0 + n, rows, s.head, s.k + tile * s.head, kStride);
    pack_columns(a.v, key0 + n, rows, s.value, s.v + tile * s.value, kStride);
  }
  for (int64_t i = 0; i < s.head_tiles.count; ++i) {
    const int64_t d = i * s.head_tiles.rows;
    float* panel = s.k_rows + i * kBackwardKeys * kStride;
    pack_rows(a.k, key0, count, d, smaller(s.head_tiles.rows, s.head - d), panel, kStride);
    take_out_wild(panel, 0, count, kStride, wild);
  }
}

/// Adds a panel's score gradients to dbias and gives them their scale.
inline void bias_gradients(const AttentionBackwardArgs& a, const BackwardState& s, int64_t t0,
                           int64_t key0, const Rows& seen, float* ds) {
  const HeadOut to{a.dbias.data + (key0 + seen.first) * a.dbias.column, a.dbias.row, a.dbias.column,
                   true};
  put_panel(ds + seen.first * kPanel, seen.last - seen.first, smaller(kPanel, a.rule.queries - t0),
            to, t0, s.bias_buffer);
  for (int64_t i = seen.first * kPanel; i < seen.last * kPanel; i += kLanes)
    store(ds + i, load(ds + i) * a.rule.scale);
}

/// One panel's probabilities and score gradients against a run of tiles, and its share of dq.
inline void panel_gradients(const AttentionBackwardArgs& a, const BackwardState& s, int64_t panel,
                            int64_t key0, const Look& look, const Rows& seen,
                            const WildRows& wild) {
  const AttentionRule& r = a.rule;
  const int64_t t0 = panel * kPanel, queries = smaller(kPanel, r.queries - t0);
  float *p = s.p + panel * kBackwardKeys * kPanel, *ds = s.ds + panel * kBackwardKeys * kPanel;
  for (int64_t n = seen.first; n < seen.last; n += kTileRows)
    product(kTileRows, s.head, s.k + n * s.head / kTileRows * kStride, s.q + t0 * s.head, r.scale,
            false, p + n * kPanel);
  if (r.cap > 0) cap_scores(r.cap, seen.first, seen.last, p);
  if (has_bias(r)) add_bias(r, t0, queries, key0, seen.first, seen.last, p, s.bias);
  const PanelView at{r, look, t0, queries, key0};
  hide(at, seen, p);
  const bool scores = a.dq.data != nullptr || a.dk.data != nullptr || a.dbias.data != nullptr;
  if (scores)
    for (int64_t n = seen.first; n < seen.last; n += kTileRows)
      product(kTileRows, s.value, s.v + n * s.value / kTileRows * kStride, s.dy + t0 * s.value, 1,
              false, ds + n * kPanel);
  if (r.dropout > 0) dropout_factors(r, t0, queries, key0, seen.first, seen.last, s.factors);
  const float* factors = r.dropout > 0 ? s.factors : nullptr;
  const float scale = a.dbias.data != nullptr ? 1 : r.scale;  // dbias is ds before the scale
  F32 found{};
  for (int j = 0; j < kTileVectors; ++j) {
    const F32 l = load(s.l + t0 + j * kLanes), mean = load(s.mean + t0 + j * kLanes);
    const I32 used = iota() + j * kLanes < static_cast<int32_t>(queries);
    for (int64_t i = seen.first * kPanel + j * kLanes; i < seen.last * kPanel; i += kPanel) {
      const F32 score = load(p + i);
      // Computed again, a large score may differ from forward's by more than exp stands.
      const F32 prob = select(used, exp(min(F32{}, score - l)), F32{});
      const F32 kept = factors == nullptr ? prob : prob * load(factors + i);
      store(p + i, kept);
      if (!scores) {
        found = add_wildness(kept, found);
        continue;
      }
      const F32 g = factors == nullptr ? load(ds + i) : load(ds + i) * load(factors + i);
      F32 d = prob * (g - mean) * scale;
      if (r.cap > 0) {
        const F32 bend =
            select(prob == 0.0f, F32{}, score * (1 / r.cap));  // hidden ones are infinite
        d *= 1.0f - bend * bend;
      }
      store(ds + i, d);
      found = add_wildness(d, found);
    }
  }
  if (any_wild(found)) clear_hidden(at, seen, p, ds);
  if (a.dbias.data != nullptr) bias_gradients(a, s, t0, key0, seen, ds);
  if (a.dq.data == nullptr) return;
  float* dq = s.dq + panel * s.dq_size();
  for (int64_t i = 0; i < s.head_tiles.count; ++i)
    product(s.head_tiles.rows, seen.last - seen.first,
            s.k_rows + (i * kBackwardKeys + seen.first) * kStride, ds + seen.first * kPanel, 1,
            true, dq + i * s.head_tiles.rows * kPanel);
  if (wild.any) add_wild_keys(at, seen, wild, a.k, s.head, ds, dq);
}

/// The panels that see a tile of the block: bit p for panel p.
struct SeenBy {
  uint64_t panels[kBackwardKeys / kTileRows];
};

/// to (keys, width) += x^T rows, x being p or ds of the panels that see each tile.
inline void sum_over_queries(const BackwardState& s, const SeenBy& seen_by, int64_t count,
                             const float* x, const float* rows, const Columns& columns, float* to) {
  for (int64_t n = 0; n < count; n += kTileRows) {
    const int64_t tile = smaller(kTileRows, count - n);
    const uint64_t panels = seen_by.panels[n / kTileRows];
    for (int64_t first = 0, last = 0; first < s.panels; first = last + 1) {
      for (last = first; last < s.panels && (panels >> last & 1) != 0; ++last)
        transpose_panel(x + (last * kBackwardKeys + n) * kPanel, kPanel, tile, kPanel,
                        s.turned + last * kPanel * kStride, kStride);
      if (first == last) continue;
      for (int64_t c = 0; c < columns.count; ++c)
        product(tile, (last - first) * kPanel, s.turned + first * kPanel * kStride,
                rows + (c * s.queries + first * kPanel) * kPanel, 1, true,
                to + n * columns.width + c * kPanel, columns.width);
    }
  }
}

inline void add_rows(const float* x, int64_t width, int64_t size, int64_t count, const HeadOut& to,
                     int64_t first) {
  for (int64_t n = 0; n < count; ++n, x += width) {
    float* row = to.data + (first + n) * to.row;
    if (to.column == 1) {
      for (int64_t d = 0; d < size; d += kLanes)
        store_first(row + d, load_first(row + d, size - d) + load(x + d), size - d);
    } else {
      for (int64_t d = 0; d < size; ++d) row[d * to.column] += x[d];
    }
  }
}

/// What a block's dk or dv is made of: x^T rows, x being ds or p and `rows` those of q or dy.
struct KeyGradient {
  const float *x, *rows;
  const Columns& columns;
  const HeadIn& from;
  const WildRows& wild;
  int64_t size;
  float* sums;
};
inline void add_key_gradient(const AttentionBackwardArgs& a, const BackwardState& s, int64_t key0,
                             int64_t count, const SeenBy& seen_by, const KeyGradient& g,
                             const HeadOut& to) {
  const int64_t width = g.columns.width;
  for (int64_t i = 0; i < count * width; i += kLanes) store(g.sums + i, F32{});
  sum_over_queries(s, seen_by, count, g.x, g.rows, g.columns, g.sums);
  for (int64_t panel = 0; g.wild.any && panel < s.panels; ++panel) {
    const int64_t t0 = panel * kPanel, queries = smaller(kPanel, a.rule.queries - t0);
    const Look look = panel_look(a.rule, panel, key0, count);
    add_wild_queries({a.rule, look, t0, queries, key0}, count, g.wild, g.from, g.size,
                     g.x + panel * kBackwardKeys * kPanel, g.sums, width);
  }
  add_rows(g.sums, width, g.size, count, to, key0);
}

inline void backward_block(const AttentionBackwardArgs& a, const BackwardState& s,
                           BackwardWild& wild, int64_t key0, int64_t count) {
  const AttentionRule& r = a.rule;
  if (look_at(r, 0, r.queries, key0, count).seen == 0) return;
  wild.k = {};
  pack_keys(a, s, key0, count, wild.k);
  SeenBy seen_by{};
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    const Look look = panel_look(r, panel, key0, count);
    for (int64_t i = 0; i < kBackwardKeys / kTileRows; ++i)
      seen_by.panels[i] |= static_cast<uint64_t>(look.seen >> i & 1) << panel;
    uint32_t rest = look.seen;
    for (Rows rows = take_run(rest, count); rows.first < rows.last; rows = take_run(rest, count))
      panel_gradients(a, s, panel, key0, look, rows, wild.k);
  }
  if (a.dv.data != nullptr)
    add_key_gradient(a, s, key0, count, seen_by,
                     {s.p, s.dy_rows, s.value_columns, a.dy, wild.dy, s.value, s.dv}, a.dv);
  if (a.dk.data != nullptr)
    add_key_gradient(a, s, key0, count, seen_by,
                     {s.ds, s.q_rows, s.head_columns, a.q, wild.q, s.head, s.dk}, a.dk);
}

inline void attention_backward(const AttentionBackwardArgs& a) {
  const BackwardState s(a);
  row_means(a, s);
  BackwardWild wild;
  pack_queries(a, s, wild);
  for (int64_t i = 0; i < s.panels * s.dq_size(); i += kLanes) store(s.dq + i, F32{});
  each_key_block(a.rule, kBackwardKeys,
                 [&](int64_t key0, int64_t count) { backward_block(a, s, wild, key0, count); });
  if (a.dq.data == nullptr) return;
  for (int64_t p = 0; p < s.panels; ++p)
    put_panel(s.dq + p * s.dq_size(), s.head, smaller(kPanel, a.rule.queries - p * kPanel), a.dq,
              p * kPanel, s.buffer);
}

}  // namespace
}  // namespace tally::cpu
