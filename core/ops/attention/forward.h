#pragma once
#include "core/ops/attention/scores.h"

namespace tally::ops {

/// y[t] = sum_j p[t,j] v[j] with p the softmax of the scores over the keys that t sees, and
/// l[t] = log sum_j exp(score[t,j]): all that the backward pass needs to make p anew. A sink is one
/// more score in the softmax, without a value. A row that sees nothing gives y = 0 and l = -inf, or
/// the sink. One row of scores exists at a time.
struct AttentionForward : AttentionScores {
  static constexpr const char* name = "attention.forward";
  static constexpr Kind kind = Kind::contraction;
  static constexpr bool any_strides = true;
  Out y, l;
  static constexpr const char* formula =
      "s = cap(scale q k^T) + bias where seen, y = softmax(s, sink) v, l = log sum exp(s, sink)";
  static constexpr const char* operands = "q, k, v, mask, bias, documents, sink, y, l";
  auto views() const { return std::tie(q, k, v, mask, bias, documents, sink, y, l); }
  DType dtype() const { return q.dtype; }
  ModelFlops model_flops() const {
    const double a_pair = 2.0 * static_cast<double>(head_size() + value_size());
    return {a_pair * static_cast<double>(batch() * heads() * tokens() * keys()), a_pair * pairs()};
  }
  Cost cost() const {
    const double a_pair = score_flops() + 3 + (dropout.p > 0 ? 1 : 0) + 2.0 * value_size();
    const double all = static_cast<double>(batch() * heads() * tokens());
    const double a_row = value_size() + 2.0 + (sink.defined() ? 3 : 0);
    return flops(pairs() * a_pair + (sink.defined() ? all : rows()) * a_row) +
           reads_of_scores(true) + reads_if(all > 0, sink) + writes(y, l);
  }
  template <class T>
  void reference() const {
    std::vector<int64_t> list;
    std::vector<acc_t<T>> p;
    for (int64_t b = 0; b < batch(); ++b) {
      for (int64_t h = 0; h < heads(); ++h) {
        for (int64_t t = 0; t < tokens(); ++t) {
          list_keys(b, h, t, list);
          row<T>(b, h, t, list, p);
        }
      }
    }
  }

 private:
  template <class T>
  void row(int64_t b, int64_t h, int64_t t, const std::vector<int64_t>& list,
           std::vector<acc_t<T>>& p) const {
    using A = acc_t<T>;
    const auto query = query_of<T>(b, h, t);
    const auto value = head<T>(v, b, group_of(h));
    const auto out = head<T>(y, b, h);
    // Without the maximum taken out exp overflows at 88 in f32.
    A top = sink.defined() ? sink_of<T>(h) : A(-INFINITY), sum(0);
    p.assign(list.size(), A(0));
    for (size_t n = 0; n < list.size(); ++n) {
      p[n] = score<T>(query, list[n]).value;
      top = larger(top, p[n]);
    }
    const bool nothing = top == A(-INFINITY);  // a bias may hide keys as a mask does
    const A shift = nothing ? A(0) : top;
    if (sink.defined()) sum += exp(sink_of<T>(h) - shift);
    for (size_t n = 0; n < list.size(); ++n) {
      p[n] = exp(p[n] - shift);
      sum += p[n];
      if (dropout.p > 0) p[n] = p[n] * A(dropout.factor(place(b, h, t) * keys() + list[n]));
    }
    for (int64_t d = 0; d < value_size(); ++d) {
      A total(0);
      for (size_t n = 0; n < list.size(); ++n) total += p[n] * A(value(list[n], d));
      y.put(out(t, d), nothing ? A(0) : total / sum);
    }
    l.at<A>(place(b, h, t)) = nothing ? A(-INFINITY) : top + log(sum);
  }
};

}  // namespace tally::ops
