#pragma once
#include <algorithm>
#include <vector>

#include "core/ops/attention/options.h"
#include "core/ops/heads.h"

namespace tally::ops {

/// What attention's forward and backward share: the sizes, which keys a query sees, and its scores.
struct AttentionScores {
  In q, k, v, mask;
  VisibleKeys visible;
  double scale = 1, cap = 0;  // cap 0: none
  AttentionDropout dropout;

  bool draws() const { return dropout.p > 0; }
  void rebind(const StepChange& change) { dropout.stream += change.streams; }
  int64_t batch() const { return q.shape[0]; }
  int64_t tokens() const { return q.shape[1]; }
  int64_t heads() const { return q.shape[2]; }
  int64_t head_size() const { return q.shape[3]; }
  int64_t keys() const { return k.shape[1]; }
  int64_t groups() const { return k.shape[2]; }
  int64_t value_size() const { return v.shape[3]; }
  /// The key/value head of a query head: heads 0 .. H/G - 1 share the first.
  int64_t group_of(int64_t h) const { return h / (heads() / groups()); }
  int64_t place(int64_t b, int64_t h, int64_t t) const { return (b * heads() + h) * tokens() + t; }
  /// Pairs of query and key that the loops visit: all batches and heads. A mask leaves fewer.
  double pairs() const { return static_cast<double>(batch() * heads()) * visible.pairs(); }
  double rows() const { return keys() > 0 ? static_cast<double>(batch() * heads() * tokens()) : 0; }

  /// FLOPs of one score: the product, the scale, the cap.
  double score_flops() const { return 2.0 * head_size() + 1 + (cap > 0 ? 3 : 0); }
  /// Bytes of q, k and v that the loops reach, and of the mask's own elements.
  Cost reads_of_scores(bool values) const {
    if (pairs() == 0) return {};
    const double part = static_cast<double>(visible.seen()) / static_cast<double>(keys());
    const double kv = k.nbytes() + (values ? v.nbytes() : 0);
    return reads(q) + Cost{0, part * kv + mask_bytes(), 0};
  }
  double mask_bytes() const {
    double n = mask.defined() ? 1 : 0;
    for (int i = 0; i < mask.shape.ndim(); ++i)
      n *= mask.strides[i] ? static_cast<double>(mask.shape[i]) : 1;
    return n;
  }

  /// The keys that query t of head h sees, in order.
  void list_keys(int64_t b, int64_t h, int64_t t, std::vector<int64_t>& list) const {
    list.clear();
    const VisibleKeys::Range range = visible.of(t);
    const Shape& s = mask.strides;
    for (int64_t j = range.begin; j < range.end; ++j) {
      if (!mask.defined() || mask.pointer<uint8_t>()[b * s[0] + h * s[1] + t * s[2] + j * s[3]])
        list.push_back(j);
    }
  }

  template <class A>
  struct Score {
    A value, bend;  // bend: tanh of the score before the cap
  };
  /// scale q.k, capped.
  template <class T>
  Score<acc_t<T>> score(Head<const T> query, int64_t t, Head<const T> key, int64_t j) const {
    using A = acc_t<T>;
    A sum(0);
    for (int64_t d = 0; d < head_size(); ++d) sum += A(query(t, d)) * A(key(j, d));
    const A u = sum * A(scale);
    if (cap == 0) return {u, A(0)};
    const A bend = tanh(u / A(cap));
    return {A(cap) * bend, bend};
  }
};

}  // namespace tally::ops
