#pragma once
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/ops/attention/options.h"
#include "core/ops/heads.h"
#include "core/ops/position.h"

namespace tally::ops {

/// What attention's forward and backward share: the sizes, which keys a query sees, and its scores.
struct AttentionScores {
  In q, k, v, mask, bias;  // mask and bias as (B,H,T,S), with strides 0 where they broadcast
  In documents, sink;      // (B,S) i64; (H)
  VisibleKeys visible;
  double scale = 1, cap = 0, alibi = 0;  // 0: none
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

  /// FLOPs of one score: the product, the scale, the cap, what is added.
  double score_flops() const {
    return 2.0 * head_size() + 1 + (cap > 0 ? 3 : 0) + (bias.defined() ? 1 : 0) +
           (alibi != 0 ? 2 : 0);
  }
  /// Bytes of q, k and v that the loops reach, of the mask's own elements and of the bias's seen
  /// ones.
  Cost reads_of_scores(bool values) const {
    if (pairs() == 0) return {};
    const double part = static_cast<double>(visible.seen()) / static_cast<double>(keys());
    const double kv = k.nbytes() + (values ? v.nbytes() : 0);
    return reads(q, documents) + Cost{0, part * kv + mask_bytes() + bias_bytes(), 0};
  }
  double mask_bytes() const {
    double n = mask.defined() ? 1 : 0;
    for (int i = 0; i < mask.shape.ndim(); ++i)
      n *= mask.strides[i] ? static_cast<double>(mask.shape[i]) : 1;
    return n;
  }

  double bias_bytes() const {
    if (!bias.defined()) return 0;
    const auto repeats = [&](int axis) { return bias.strides[axis] == 0; };
    const double tables = (repeats(0) ? 1.0 : static_cast<double>(batch())) *
                          (repeats(1) ? 1.0 : static_cast<double>(heads()));
    const double places = repeats(2) && repeats(3) ? 1.0
                          : repeats(2)             ? static_cast<double>(visible.seen())
                          : repeats(3)             ? static_cast<double>(tokens())
                                                   : visible.pairs();
    return tables * places * static_cast<double>(size_of(bias.dtype));
  }

  /// The keys that query t of head h sees, in order.
  void list_keys(int64_t b, int64_t h, int64_t t, std::vector<int64_t>& list) const {
    list.clear();
    const Shape& s = mask.strides;
    const int64_t own = documents.defined() ? document(b, visible.position(t)) : 0;
    visible.of(t).each([&](int64_t j) {
      if (mask.defined() && !mask.pointer<uint8_t>()[b * s[0] + h * s[1] + t * s[2] + j * s[3]])
        return;
      if (!documents.defined() || document(b, j) == own) list.push_back(j);
    });
  }
  int64_t document(int64_t b, int64_t j) const {
    return documents.pointer<int64_t>()[b * documents.strides[0] + j * documents.strides[1]];
  }

  /// One query and what its scores need besides: its key head, its row of the bias, its slope.
  template <class T>
  struct Query {
    Head<const T> row, key;
    int64_t t, position;
    const T* bias;
    int64_t bias_column;
    acc_t<T> slope;
  };
  template <class T>
  Query<T> query_of(int64_t b, int64_t h, int64_t t) const {
    Query<T> one{head<T>(q, b, h),
                 head<T>(k, b, group_of(h)),
                 t,
                 keys() - tokens() + t,
                 nullptr,
                 0,
                 acc_t<T>(alibi == 0 ? 0 : -alibi * alibi_slope(h, heads()))};
    if (bias.defined()) {
      const Shape& s = bias.strides;
      one.bias = bias.pointer<const T>() + b * s[0] + h * s[1] + t * s[2];
      one.bias_column = s[3];
    }
    return one;
  }

  template <class T>
  acc_t<T> sink_of(int64_t h) const {
    return acc_t<T>(sink.pointer<T>()[h * sink.strides[0]]);
  }
  template <class A>
  struct Score {
    A value, bend;  // bend: tanh of the score before the cap
  };
  /// scale q.k, capped, with the bias and ALiBi's share.
  template <class T>
  Score<acc_t<T>> score(const Query<T>& one, int64_t j) const {
    using A = acc_t<T>;
    A sum(0);
    for (int64_t d = 0; d < head_size(); ++d) sum += A(one.row(one.t, d)) * A(one.key(j, d));
    Score<A> s{sum * A(scale), A(0)};
    if (cap != 0) {
      s.bend = tanh(s.value / A(cap));
      s.value = A(cap) * s.bend;
    }
    if (one.bias) s.value += A(one.bias[j * one.bias_column]);
    if (alibi != 0) s.value += one.slope * A(static_cast<double>(std::abs(one.position - j)));
    return s;
  }
};

}  // namespace tally::ops
