#pragma once
// Sparse patterns as dense attentions: queries that see the same far keys, or a causal part of them,
// and only these keys, each at an even distance from the one before.
#include "backends/cpu/attention_args.h"
#include "core/ops/attention/scores.h"

namespace tally::cpu {

/// Queries first, first + step, ... against keys first_key, first_key + key_step, ...; the last query
/// sees all of these. `resume`: after other keys of the same queries.
struct AttentionPart {
  int64_t first, step, queries;
  int64_t first_key, key_step, keys;
  bool causal, resume;
};

/// Whether parts serve a call: a pattern alone, and enough queries to a part. Else the kernels skip
/// the tiles that no query of a panel sees.
inline bool in_parts(const ops::AttentionScores& c) {
  const ops::VisibleKeys& v = c.visible;
  if (!v.causal || c.mask.defined() || c.documents.defined() || c.bias.defined() || c.alibi != 0 ||
      c.dropout.p > 0)
    return false;
  if (v.pattern == ops::KeyPattern::strided) return v.queries > 2 * v.stride;
  return v.pattern == ops::KeyPattern::fixed && v.global == 0 && v.prefix == 0 &&
         std::min(v.stride, v.queries) >= 40;
}
/// What comes before the parts of a strided pattern: the last `stride` keys and the head.
inline ops::AttentionScores near_keys(ops::AttentionScores c) {
  c.visible.window = c.visible.stride;
  c.visible.pattern = ops::KeyPattern::all;
  return c;
}

/// Far keys of a strided pattern: queries whose positions leave the same rest of the stride see keys
/// of that rest.
inline AttentionPart residue_part(const ops::VisibleKeys& v, int64_t rest) {
  const int64_t head = std::max(v.global, v.prefix), start = v.position(0), stride = v.stride;
  AttentionPart p{0,      stride, 0,    head + (rest + stride - head % stride) % stride,
                  stride, 0,      true, true};
  const int64_t behind = std::max<int64_t>(start - p.first_key + stride - 1, 0) / stride;
  p.first = p.first_key + stride * std::max<int64_t>(behind, 1) - start;
  p.queries = p.first < v.queries ? (v.queries - 1 - p.first) / stride + 1 : 0;
  p.keys = (v.position(p.first) - p.first_key) / stride + p.queries - 1;
  return p;
}
/// Block number `block` of a fixed pattern: f(own keys), then f(keys that sum up the blocks before)
/// for each of their places in a block.
template <class F>
void block_parts(const ops::VisibleKeys& v, int64_t block, F&& f) {
  const int64_t start = block * v.stride, end = std::min(start + v.stride, v.keys);
  const int64_t first = std::max<int64_t>(start - v.position(0), 0);
  const int64_t queries = end - v.position(first);
  f(AttentionPart{first, 1, queries, start, 1, end - start, true, false});
  for (int64_t place = v.stride - v.summary; block > 0 && place < v.stride; ++place)
    f(AttentionPart{first, 1, queries, place, v.stride, block, false, true});
}

/// Groups of parts, which share no query.
inline int64_t part_groups(const ops::VisibleKeys& v) {
  if (v.pattern == ops::KeyPattern::strided) return v.stride;
  return (v.keys - 1) / v.stride - v.position(0) / v.stride + 1;
}
/// Calls f(part) for the parts of a group, in order.
template <class F>
void each_part(const ops::VisibleKeys& v, int64_t group, F&& f) {
  if (v.pattern == ops::KeyPattern::strided) return f(residue_part(v, group));
  block_parts(v, v.position(0) / v.stride + group, f);
}

}  // namespace tally::cpu
