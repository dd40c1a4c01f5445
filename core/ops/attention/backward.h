#pragma once
#include "core/ops/attention/scores.h"

namespace tally::ops {

/// With p[t,j] = exp(score[t,j] - l[t]) made anew from l, and g[t,j] = dy[t].v[j]:
///   dv[j] = sum_t p[t,j] dy[t]                              sums over the query heads of the group
///   too ds[t,j] = p[t,j] (g[t,j] - dy[t].y[t])                  the softmax: y.dy is the mean of g
///   under p dq[t] = scale sum_j ds[t,j] k[j],  dk[j] = scale sum_t ds[t,j] q[t]
/// A sink is one more score, whose value is 0: dsink = -sum_t exp(sink - l[t]) dy[t].y[t].
/// The bias is added behind the cap: its gradient is ds, summed where it broadcasts. A soft cap
/// multiplies ds by its slope 1 - tanh^2; dropout multiplies p in dv, and g, by its
/// factor.
struct AttentionBackward : AttentionScores {
  static constexpr const char* name = "attention.backward";
  static constexpr Kind kind = Kind::contraction;
  static constexpr bool any_strides = true;
  In dy, y, l;
  Out dq, dk, dv, dbias, dsink;  // dbias in the bias's own shape
  static constexpr const char* formula =
      "p = exp(s - l), ds = p (dy v^T - sum(dy y)), dq = scale ds k, dk = scale ds^T q, dv = p^T "
      "dy, dbias = ds, dsink = -sum(exp(sink - l) dy y)";
  static constexpr const char* operands =
      "q, k, v, mask, bias, documents, sink, dy, y, l, dq, dk, dv, dbias, dsink";
  auto views() const {
    return std::tie(q, k, v, mask, bias, documents, sink, dy, y, l, dq, dk, dv, dbias, dsink);
  }
  DType dtype() const { return q.dtype; }
  bool wants_scores() const { return dq.defined() || dk.defined() || dbias.defined(); }
  bool wants_means() const { return wants_scores() || dsink.defined(); }
  double products() const {  // per pair
    const double to_scores = wants_scores() ? 2.0 * value_size() : 0;
    return to_scores + (dv.defined() ? 2.0 * value_size() : 0) +
           2.0 * head_size() * ((dq.defined() ? 1 : 0) + (dk.defined() ? 1 : 0));
  }
  ModelFlops model_flops() const {  // the scores made anew are work of ours, not of the model
    return {products() * static_cast<double>(batch() * heads() * tokens() * keys()),
            products() * pairs()};
  }
  Cost cost() const {
    const double kept = dropout.p > 0 ? 1 : 0;
    double a_pair = score_flops() + 2 + products() + (dv.defined() ? kept : 0);
    if (wants_scores()) a_pair += kept + 3 + (cap > 0 ? 3 : 0) + (dbias.defined() ? 1 : 0);
    const double a_row = (wants_means() ? 2.0 * value_size() : 0) + (dsink.defined() ? 4 : 0);
    return flops(pairs() * a_pair + rows() * a_row) + reads_of_scores(wants_scores()) +
           reads_if(pairs() > 0, dy, l) + reads_if(pairs() > 0 && wants_means(), y) +
           reads_if(pairs() > 0 && dsink.defined(), sink) + writes(dq, dk, dv, dbias, dsink);
  }

  template <class T>
  void reference() const {
    using A = acc_t<T>;
    Sums<T> sums;
    if (dbias.defined()) sums.dbias.assign(static_cast<size_t>(dbias.numel()), A(0));
    if (dsink.defined()) sums.dsink.assign(static_cast<size_t>(heads()), A(0));
    for (int64_t b = 0; b < batch(); ++b) {
      for (int64_t g = 0; g < groups(); ++g) {
        sums.dk.assign(static_cast<size_t>(keys() * head_size()), A(0));
        sums.dv.assign(static_cast<size_t>(keys() * value_size()), A(0));
        for (int64_t h = g * (heads() / groups()); h < (g + 1) * (heads() / groups()); ++h) {
          for (int64_t t = 0; t < tokens(); ++t) {
            list_keys(b, h, t, sums.list);
            row<T>(b, h, t, sums);
          }
        }
        put_head<T>(dk, b, g, sums.dk);
        put_head<T>(dv, b, g, sums.dv);
      }
    }
    put_bias<T>(sums.dbias);
    for (size_t h = 0; h < sums.dsink.size(); ++h)
      dsink.put(dsink.pointer<T>()[static_cast<int64_t>(h) * dsink.strides[0]], -sums.dsink[h]);
  }
  /// Distances of a dense dbias along (b,h,t,j): 0 where the bias broadcasts.
  std::array<int64_t, 4> bias_steps() const {
    std::array<int64_t, 4> steps{};
    int64_t next = 1;
    for (int i = 1; i <= dbias.shape.ndim(); ++i) {
      const int64_t size = dbias.shape[-i];
      if (size != 1) steps[static_cast<size_t>(4 - i)] = next;
      next *= size;
    }
    return steps;
  }

 private:
  template <class T>
  struct Sums {
    std::vector<int64_t> list;           // keys of the row
    std::vector<acc_t<T>> dq, dk, dv;    // of the row; of the key/value head
    std::vector<acc_t<T>> dbias, dsink;  // of all; dsink negative
  };
  template <class T>
  static void put_head(const Out& to, int64_t b, int64_t g, const std::vector<acc_t<T>>& sums) {
    if (!to.defined()) return;
    const auto out = head<T>(to, b, g);
    for (int64_t j = 0; j < to.shape[1]; ++j) {
      for (int64_t d = 0; d < to.shape[3]; ++d)
        to.put(out(j, d), sums[static_cast<size_t>(j * to.shape[3] + d)]);
    }
  }
  template <class T>
  void put_bias(const std::vector<acc_t<T>>& sums) const {
    const Shape &shape = dbias.shape, &strides = dbias.strides;
    for (size_t i = 0; i < sums.size(); ++i) {
      int64_t rest = static_cast<int64_t>(i), at = 0;
      for (int axis = 1; axis <= shape.ndim(); ++axis) {
        at += rest % shape[-axis] * strides[-axis];
        rest /= shape[-axis];
      }
      dbias.put(dbias.pointer<T>()[at], sums[i]);
    }
  }
  template <class T>
  acc_t<T> dot(Head<const T> a, int64_t i, Head<const T> b, int64_t j) const {
    using A = acc_t<T>;
    A sum(0);
    for (int64_t d = 0; d < value_size(); ++d) sum += A(a(i, d)) * A(b(j, d));
    return sum;
  }
  template <class T>
  void row(int64_t b, int64_t h, int64_t t, Sums<T>& sums) const {
    using A = acc_t<T>;
    const auto query = query_of<T>(b, h, t);
    const auto value = head<T>(v, b, group_of(h));
    const auto steps = bias_steps();
    const auto up = head<T>(dy, b, h), out = head<T>(y, b, h);
    sums.dq.assign(static_cast<size_t>(head_size()), A(0));
    const A mean = wants_means() && !sums.list.empty() ? dot<T>(up, t, out, t) : A(0);
    const A sum = sums.list.empty() ? A(0) : l.at<A>(place(b, h, t));
    const A total = sum == A(-INFINITY) ? A(0) : sum;  // a row whose keys the bias hides
    if (dsink.defined() && !sums.list.empty())
      sums.dsink[static_cast<size_t>(h)] += exp(sink_of<T>(h) - total) * mean;
    for (const int64_t j : sums.list) {
      const auto s = score<T>(query, j);
      const A p = exp(s.value - total);
      const A kept = dropout.p > 0 ? A(dropout.factor(place(b, h, t) * keys() + j)) : A(1);
      if (dv.defined()) {
        const A share = dropout.p > 0 ? p * kept : p;
        for (int64_t d = 0; d < value_size(); ++d)
          sums.dv[static_cast<size_t>(j * value_size() + d)] += share * A(up(t, d));
      }
      if (!wants_scores()) continue;
      A ds = dot<T>(up, t, value, j);
      if (dropout.p > 0) ds = ds * kept;
      ds = p * (ds - mean);
      if (dbias.defined())
        sums.dbias[static_cast<size_t>(b * steps[0] + h * steps[1] + t * steps[2] +
                                       j * steps[3])] += ds;
      if (cap > 0) ds = ds * (A(1) - s.bend * s.bend);
      ds = ds * A(scale);
      for (int64_t d = 0; d < head_size(); ++d) {
        if (dq.defined()) sums.dq[static_cast<size_t>(d)] += ds * A(query.key(j, d));
        if (dk.defined())
          sums.dk[static_cast<size_t>(j * head_size() + d)] += ds * A(query.row(t, d));
      }
    }
    if (!dq.defined()) return;
    const auto to = head<T>(dq, b, h);
    for (int64_t d = 0; d < head_size(); ++d) dq.put(to(t, d), sums.dq[static_cast<size_t>(d)]);
  }
};

}  // namespace tally::ops
