#pragma once
// The forward pass of attention. Keys are taken in blocks; each panel of queries keeps the maximum
// and the sum of what it has seen so far and rescales its output when the maximum grows (Milakov &
// Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). A block of scores lives in
// the first-level cache; a tile that a panel does not see costs nothing.
#include "backends/cpu/attention_single.h"
#include "backends/cpu/attention_tile.h"
#include "backends/cpu/attention_wild.h"

namespace tally::cpu {
namespace {

/// Keys in a block: scores of a panel against it take 14 KB with AVX-512.
inline constexpr int64_t kForwardKeys = 112 / kTileRows * kTileRows;

/// What all panels of a call share, and what each keeps.
struct ForwardState {
  Tiles values;  // the tiles of an output row
  int64_t head, panels;
  float *queries, *keys, *value_rows;  // packed: all panels, one block, one block
  float *outputs, *tops, *sums;        // of each panel: (values, kPanel), kPanel, kPanel
  float *scores, *factors, *buffer;    // of the block at hand
  float* bias;                         // the same, where there is one
  int64_t output_size() const { return values.count * values.rows * kPanel; }

  explicit ForwardState(const AttentionForwardArgs& a)
      : values(a.rule.value_size),
        head(a.rule.head_size),
        panels((a.rule.queries + kPanel - 1) / kPanel) {
    Arena arena{a.scratch};
    queries = arena.take(panels * head * kPanel);
    keys = arena.take(kForwardKeys / kTileRows * head * kStride);
    value_rows = arena.take(values.count * kForwardKeys * kStride);
    outputs = arena.take(panels * output_size());
    tops = arena.take(panels * kPanel);
    sums = arena.take(panels * kPanel);
    scores = arena.take(kForwardKeys * kPanel);
    factors = a.rule.dropout > 0 ? arena.take(kForwardKeys * kPanel) : nullptr;
    buffer = arena.take(round_up(a.rule.value_size, kLanes) * kPanel);
    bias = a.rule.bias != nullptr ? arena.take(kForwardKeys * kPanel) : nullptr;
  }
};

/// The tiles of `seen`; `wild`: which rows of values hold what the products leave out.
inline void pack_key_block(const AttentionForwardArgs& a, const ForwardState& s, int64_t key0,
                           int64_t count, uint32_t seen, WildRows& wild) {
  for (Rows rows = take_run(seen, count); rows.first < rows.last; rows = take_run(seen, count)) {
    for (int64_t n = rows.first; n < rows.last; n += kTileRows)
      pack_columns(a.k, key0 + n, smaller(kTileRows, rows.last - n), s.head,
                   s.keys + n * s.head / kTileRows * kStride, kStride);
    for (int64_t i = 0; i < s.values.count; ++i) {
      const int64_t d = i * s.values.rows;
      float* panel = s.value_rows + i * kForwardKeys * kStride;
      pack_rows(a.v, key0 + rows.first, rows.last - rows.first, d,
                smaller(s.values.rows, a.rule.value_size - d), panel + rows.first * kStride,
                kStride);
      take_out_wild(panel, rows.first, rows.last, kStride, wild);
    }
  }
}

/// The softmax of the scores so far: scores become probabilities up to the panel's new maximum, and
/// `rescale` what its sum and output must be multiplied by.
inline void add_scores(const Rows& seen, float* scores, float* tops, float* sums,
                       F32 (&rescale)[kTileVectors]) {
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t at = j * kLanes;
    const F32 before = load(tops + at);
    F32 top = before, sum{};
    for (int64_t n = seen.first; n < seen.last; ++n) top = max(top, load(scores + n * kPanel + at));
    for (int64_t n = seen.first; n < seen.last; ++n) {
      const F32 p = exp(load(scores + n * kPanel + at) - top);
      sum += p;
      store(scores + n * kPanel + at, p);
    }
    rescale[j] = exp(before - top);
    store(tops + at, top);
    store(sums + at, load(sums + at) * rescale[j] + sum);
  }
}

/// What a panel makes of one run of tiles that it sees.
inline void update_panel(const AttentionForwardArgs& a, const ForwardState& s, int64_t panel,
                         int64_t key0, const Look& look, const Rows& seen, const WildRows& wild) {
  const AttentionRule& r = a.rule;
  const int64_t t0 = panel * kPanel, queries = smaller(kPanel, r.queries - t0);
  const float* q = s.queries + panel * s.head * kPanel;
  for (int64_t n = seen.first; n < seen.last; n += kTileRows)
    product(kTileRows, s.head, s.keys + n * s.head / kTileRows * kStride, q, r.scale, false,
            s.scores + n * kPanel);
  if (r.cap > 0) cap_scores(r.cap, seen.first, seen.last, s.scores);
  if (has_bias(r)) add_bias(r, t0, queries, key0, seen.first, seen.last, s.scores, s.bias);
  const PanelView at{r, look, t0, queries, key0};
  hide(at, seen, s.scores);

  F32 rescale[kTileVectors];
  add_scores(seen, s.scores, s.tops + t0, s.sums + t0, rescale);
  float* y = s.outputs + panel * s.output_size();
  for (float* p = y; p < y + s.output_size(); p += kPanel)
    for (int j = 0; j < kTileVectors; ++j) store(p + j * kLanes, load(p + j * kLanes) * rescale[j]);
  if (r.dropout > 0) {
    dropout_factors(r, t0, queries, key0, seen.first, seen.last, s.factors);
    for (int64_t i = seen.first * kPanel; i < seen.last * kPanel; i += kLanes)
      store(s.scores + i, load(s.scores + i) * load(s.factors + i));
  }
  for (int64_t i = 0; i < s.values.count; ++i)
    product(s.values.rows, seen.last - seen.first,
            s.value_rows + (i * kForwardKeys + seen.first) * kStride,
            s.scores + seen.first * kPanel, 1, true, y + i * s.values.rows * kPanel);
  if (wild.any) add_wild_keys(at, seen, wild, a.v, r.value_size, s.scores, y);
}

/// Maxima, sums and outputs before the first key: a sink counts from the start, exp(sink - sink) is 1;
/// what other keys gave is one whose exp(l - l) is 1 and whose value is y.
inline void start_panels(const AttentionForwardArgs& a, const ForwardState& s) {
  const AttentionRule& r = a.rule;
  for (int64_t i = 0; i < s.panels * s.output_size(); i += kLanes) store(s.outputs + i, F32{});
  const bool sink = r.sink != -__builtin_inff();
  for (int64_t i = 0; i < s.panels * kPanel; i += kLanes) {
    store(s.tops + i, broadcast(sink ? r.sink : kNothing));
    store(s.sums + i, broadcast(sink ? r.sink - r.sink + 1 : 0));
  }
  if (!a.resume) return;
  for (int64_t t = 0; t < r.queries; ++t) {
    const float l = a.l[t * a.l_step];
    const bool nothing = l == -__builtin_inff();
    s.tops[t] = nothing ? kNothing : l;
    s.sums[t] = nothing ? 0 : 1;
  }
  for (int64_t p = 0; p < s.panels; ++p)
    pack_columns({a.y.data, a.y.row, a.y.column}, p * kPanel,
                 smaller(kPanel, r.queries - p * kPanel), r.value_size,
                 s.outputs + p * s.output_size(), kPanel);
}

/// Divides a panel's output by its sums and writes it and log sum exp; 0 and -infinity where no key
/// was seen.
inline void finish_panel(const AttentionForwardArgs& a, const ForwardState& s, int64_t panel) {
  const int64_t t0 = panel * kPanel, queries = smaller(kPanel, a.rule.queries - t0);
  float* y = s.outputs + panel * s.output_size();
  for (int j = 0; j < kTileVectors; ++j) {
    const F32 sum = load(s.sums + t0 + j * kLanes), top = load(s.tops + t0 + j * kLanes);
    const F32 inverse = 1.0f / sum;
    for (int64_t d = 0; d < a.rule.value_size; ++d) {
      float* p = y + d * kPanel + j * kLanes;
      store(p, select(sum == 0.0f, F32{}, load(p) * inverse));
    }
    const F32 l = top + log(sum);
    for (int64_t t = j * kLanes; t < smaller(queries, (j + 1) * kLanes); ++t)
      a.l[(t0 + t) * a.l_step] = l[t - j * kLanes];
  }
  put_panel(y, a.rule.value_size, queries, a.y, t0, s.buffer);
}

inline void key_block(const AttentionForwardArgs& a, const ForwardState& s, int64_t key0,
                      int64_t count) {
  const AttentionRule& r = a.rule;
  const uint32_t seen = look_at(r, 0, r.queries, key0, count).seen;
  if (seen == 0) return;
  WildRows wild;
  pack_key_block(a, s, key0, count, seen, wild);
  for (int64_t p = 0; p < s.panels; ++p) {
    const Look look = panel_look(r, p, key0, count);
    uint32_t rest = look.seen;
    for (Rows rows = take_run(rest, count); rows.first < rows.last; rows = take_run(rest, count))
      update_panel(a, s, p, key0, look, rows, wild);
  }
}

inline void attention_forward(const AttentionForwardArgs& a) {
  const AttentionRule& r = a.rule;
  if (r.queries <= kFewQueries && !a.resume && single_queries_serve(a)) {
    for (int64_t t = 0; t < r.queries; ++t)
      single_query(a, t, a.q.data + t * a.q.row, a.y.data + t * a.y.row, a.y.add);
    return;
  }
  const ForwardState s(a);
  for (int64_t p = 0; p < s.panels; ++p)
    pack_columns(a.q, p * kPanel, smaller(kPanel, r.queries - p * kPanel), s.head,
                 s.queries + p * s.head * kPanel, kPanel);
  start_panels(a, s);
  each_key_block(a.rule, kForwardKeys,
                 [&](int64_t key0, int64_t count) { key_block(a, s, key0, count); });
  for (int64_t p = 0; p < s.panels; ++p) finish_panel(a, s, p);
}

}  // namespace
}  // namespace tally::cpu
