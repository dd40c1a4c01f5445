#pragma once
// One query against its keys, as in decoding: here memory is the limit, so keys and values are read
// once, where they lie, with the elements of a head in the lanes.
#include "backends/cpu/attention_tile.h"
#include "backends/cpu/half_kernels.h"
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

/// Up to this many queries go one by one: a panel would be almost empty.
inline constexpr int64_t kFewQueries = 4;

inline bool single_queries_serve(const AttentionForwardArgs& a) {
  return a.q.column == 1 && a.k.column == 1 && a.v.column == 1 && a.y.column == 1 &&
         a.rule.keys <= kMostKeys && !(a.rule.dropout > 0);
}

/// out[n] = q . row n of keys, for 4 rows at a time.
template <class T>
void dot_rows(const float* q, const HeadInOf<T>& k, int64_t size, int64_t first, int64_t count,
              float* out) {
  for (int64_t n = 0; n < count; n += 4) {
    const T* row[4];
    F32 sums[4];
    for (int i = 0; i < 4; ++i) {
      row[i] = k.data + (first + smaller(n + i, count - 1)) * k.row;
      sums[i] = F32{};
    }
    each_vector(size, [&](int64_t d, auto lanes) {
      const F32 x = load_some(q + d, lanes);
      for (int i = 0; i < 4; ++i) sums[i] = fma(x, load_some(row[i] + d, lanes), sums[i]);
    });
    for (int i = 0; i < 4; ++i) out[n + i] = sum(sums[i]);
  }
}

/// y = factor sum over n of p[n] row n of values, columns by columns of four vectors.
template <class T>
void sum_rows(const float* p, const HeadInOf<T>& v, int64_t size, int64_t first, int64_t count,
              float factor, float* y, bool add) {
  for (int64_t d = 0; d < size; d += 4 * kLanes) {
    F32 sums[4];
    int64_t lanes[4];
    for (int i = 0; i < 4; ++i) {
      sums[i] = F32{};
      lanes[i] = size - d - i * kLanes;
      lanes[i] = lanes[i] < 0 ? 0 : lanes[i];
    }
    for (int64_t n = 0; n < count; ++n) {
      const T* row = v.data + (first + n) * v.row + d;
      const F32 weight = broadcast(p[n]);
      if (lanes[3] >= kLanes) {
        for (int i = 0; i < 4; ++i)
          sums[i] = fma(weight, load_some(row + i * kLanes, All{}), sums[i]);
      } else {
        for (int i = 0; i < 4; ++i)
          if (lanes[i] > 0)
            sums[i] = fma(weight, load_some(row + i * kLanes, smaller(lanes[i], kLanes)), sums[i]);
      }
    }
    for (int i = 0; i < 4; ++i)
      if (lanes[i] > 0) put(y + d + i * kLanes, sums[i] * factor, lanes[i], add);
  }
}

/// Scores of the keys [run.begin, run.end) with query t, whose elements q has; their place is p.
template <class T>
void score_run(const AttentionForwardArgsOf<T>& a, int64_t t, const float* q,
               const ops::KeyRange& run, float* p) {
  const AttentionRule& r = a.rule;
  const int64_t first = run.begin, count = run.end - run.begin, place = r.position(t);
  dot_rows(q, a.k, r.head_size, first, count, p);
  each_vector(count, [&](int64_t n, auto lanes) {
    F32 s = load_some(p + n, lanes) * r.scale;
    if (r.cap > 0) s = r.cap * tanh(s * (1 / r.cap));
    store(p + n, s);
  });
  const float position = static_cast<float>(place - first);
  for (int64_t n = 0; r.slope != 0 && n < count; n += kLanes) {
    const F32 ahead = __builtin_convertvector(iota(), F32) + (static_cast<float>(n) - position);
    store(p + n, fma(broadcast(r.slope), abs(ahead), load(p + n)));
  }
  for (int64_t n = 0; r.bias != nullptr && n < count; ++n)
    p[n] += r.bias[t * r.bias_row + (first + n) * r.bias_column];
  for (int64_t n = 0; r.mask != nullptr && n < count; ++n)
    if (r.mask[t * r.mask_row + (first + n) * r.mask_column] == 0) p[n] = -__builtin_inff();
  for (int64_t n = 0; r.documents != nullptr && n < count; ++n)
    if (r.document(first + n) != r.document(place)) p[n] = -__builtin_inff();
}

/// Scores become exponentials above their maximum, the result; `total` receives their sum.
inline float exponentials(const AttentionRule& r, int64_t count, float* p, float& total) {
  const bool sink = r.sink != -__builtin_inff();
  F32 tops = broadcast(sink ? r.sink : kNothing), sums{};
  for (int64_t n = count; n < round_up(count, kLanes); ++n) p[n] = -__builtin_inff();
  for (int64_t n = 0; n < count; n += kLanes) tops = max(tops, load(p + n));
  const float top = max_lane(tops);  // a NaN is lost here, and comes back through exp
  for (int64_t n = 0; n < count; n += kLanes) {
    const F32 e = exp(load(p + n) - top);
    sums += e;
    store(p + n, e);
  }
  total = sum(sums) + (sink ? exp(broadcast(r.sink - top))[0] : 0);
  return top;
}

/// The first stretch at or behind `from` whose keys neither the mask nor documents hide. Values that
/// are hidden are not read: a NaN times a probability of 0 is NaN.
inline ops::KeyRange shown_keys(const AttentionRule& r, int64_t t, int64_t from, int64_t end) {
  const auto hides = [&](int64_t key) {
    return (r.mask != nullptr && r.mask[t * r.mask_row + key * r.mask_column] == 0) ||
           (r.documents != nullptr && r.document(key) != r.document(r.position(t)));
  };
  if (r.mask == nullptr && r.documents == nullptr) return {from, end};
  while (from < end && hides(from)) ++from;
  int64_t to = from;
  while (to < end && !hides(to)) ++to;
  return {from, to};
}

/// Query t, given as q, against its keys; y (+)= what they make of the values.
template <class T>
void single_query(const AttentionForwardArgsOf<T>& a, int64_t t, const float* q, float* y,
                  bool add) {
  const AttentionRule& r = a.rule;
  const ops::KeySet keys = r.visible.of(r.first + t);
  float* p = a.scratch;
  int64_t count = 0;
  for (ops::KeyRange run = keys.next(0); run.begin < run.end; run = keys.next(run.end)) {
    score_run(a, t, q, run, p + count);
    count += run.end - run.begin;
  }
  float total;
  const float top = exponentials(r, count, p, total);
  a.l[t] = total == 0 ? -__builtin_inff() : top + log(broadcast(total))[0];
  const float factor = total == 0 ? 0 : 1 / total;
  sum_rows(p, a.v, r.value_size, 0, 0, factor, y, add);  // zeros, or a sink's NaN
  if (total == 0) return;
  for (ops::KeyRange run = keys.next(0); run.begin < run.end; run = keys.next(run.end)) {
    for (ops::KeyRange part = shown_keys(r, t, run.begin, run.end); part.begin < part.end;
         part = shown_keys(r, t, part.end, run.end))
      sum_rows(p + part.begin - run.begin, a.v, r.value_size, part.begin, part.end - part.begin,
               factor, y, true);
    p += run.end - run.begin;
  }
}

/// Queries one by one whose heads, keys and values are kept in bf16.
inline void attention_half(const AttentionForwardArgsOf<uint16_t>& a) {
  float q[kMaxHeadSize], y[kMaxHeadSize];
  for (int64_t t = 0; t < a.rule.queries; ++t) {
    widen(a.rule.head_size, a.q.data + t * a.q.row, q);
    single_query(a, t, q, y, false);
    narrow(a.rule.value_size, y, a.y.data + t * a.y.row, a.y.add);
  }
}

}  // namespace
}  // namespace tally::cpu
