#pragma once
#include <vector>

#include "core/op.h"
#include "core/ops/position.h"

namespace tally::ops {

// T5's relative position bias: one learned number for each head and bucket of distances, added to
// the scores of attention. Raffel et al. 2019, arXiv:1910.10683, sec. 2.1. Lecture claims L43, L45.
//
//   forward    y[h,t,j]  = w[bucket(j - (S - T + t)), h]        T queries are the last of S keys
//   backward   dw[b,h]   = sum of dy[h,t,j] over the pairs whose bucket is b
//
//   w, dw (buckets,H)    y, dy (H,T,S)    saved: shapes alone
struct RelativeBias {
  static constexpr const char* name = "relative_bias";
  struct Attrs {
    int64_t queries = 0, keys = 0;
    bool two_sided = false;
    int64_t max_distance = 128;
  };
  struct Saved {
    Attrs attrs;
    Shape table;
    Like y;
  };

  // What both calls share: which bucket a distance has.
  struct Buckets {
    Attrs attrs;
    int64_t distances() const { return attrs.queries + attrs.keys - 1; }
    /// Number of the distance of a pair, counted from that of the first key and the last query.
    int64_t distance(int64_t t, int64_t j) const { return j + attrs.queries - 1 - t; }
    std::vector<int64_t> buckets(int64_t count) const {
      std::vector<int64_t> list;
      if (attrs.queries == 0 || attrs.keys == 0) return list;
      for (int64_t i = 0; i < distances(); ++i)
        list.push_back(t5_bucket(i - attrs.keys + 1, attrs.two_sided, count, attrs.max_distance));
      return list;
    }
    /// Buckets that some pair has.
    double used(int64_t count) const {
      std::vector<bool> seen(static_cast<size_t>(count), false);
      double n = 0;
      for (const int64_t b : buckets(count)) {
        n += seen[static_cast<size_t>(b)] ? 0 : 1;
        seen[static_cast<size_t>(b)] = true;
      }
      return n;
    }
  };

  struct Forward : Buckets {
    static constexpr const char* name = "relative_bias.forward";
    static constexpr Kind kind = Kind::movement;
    In w;
    Out y;
    static constexpr const char* formula = "y[h,t,j] = w[bucket(j - t), h]";
    static constexpr const char* operands = "w, y";
    auto views() const { return std::tie(w, y); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double read = used(w.shape[0]) * static_cast<double>(w.shape[1]);
      return Cost{0, read * static_cast<double>(size_of(w.dtype)), 0} + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const std::vector<int64_t> list = this->buckets(w.shape[0]);
      std::vector<A> row(list.size(), A(0));  // of one head, by distance
      for (int64_t h = 0; h < w.shape[1]; ++h) {
        for (size_t i = 0; i < list.size(); ++i) row[i] = A(w.row<T>(list[i])[h]);
        for (int64_t t = 0; t < attrs.queries; ++t) {
          T* to = y.row<T>(h * attrs.queries + t);
          for (int64_t j = 0; j < attrs.keys; ++j)
            y.put(to[j], row[static_cast<size_t>(distance(t, j))]);
        }
      }
    }
  };

  struct Backward : Buckets {
    static constexpr const char* name = "relative_bias.backward";
    static constexpr Kind kind = Kind::movement;
    In dy;
    Out dw;
    static constexpr const char* formula = "dw[bucket,h] = sum of dy[h,t,j] with that bucket";
    static constexpr const char* operands = "dy, dw";
    auto views() const { return std::tie(dy, dw); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const { return flops(dy.numel()) + reads(dy) + writes(dw); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const std::vector<int64_t> list = this->buckets(dw.shape[0]);
      std::vector<A> sums;
      for (int64_t h = 0; h < dw.shape[1]; ++h) {
        sums.assign(static_cast<size_t>(dw.shape[0]), A(0));
        for (int64_t t = 0; t < attrs.queries; ++t) {
          const T* from = dy.row<T>(h * attrs.queries + t);
          for (int64_t j = 0; j < attrs.keys; ++j)
            sums[static_cast<size_t>(list[static_cast<size_t>(distance(t, j))])] += A(from[j]);
        }
        for (int64_t b = 0; b < dw.shape[0]; ++b)
          dw.put(dw.row<T>(b)[h], sums[static_cast<size_t>(b)]);
      }
    }
  };

  static Tensor forward(const Tensor& w, const Attrs& a, Saved* saved) {
    check_defined(name, "w", w);
    check_same_dtype(name, w);
    check(w.ndim() == 2, "relative_bias: w must be (buckets, H); got ", w.shape(), in_module());
    check(a.queries >= 0 && a.keys >= 0,
          "relative_bias: tokens must not be negative; got T = ", a.queries, ", S = ", a.keys,
          in_module());
    const int64_t exact = w.size(0) / (a.two_sided ? 4 : 2);  // distances with a bucket each
    check(exact >= 1 && a.max_distance > exact, "relative_bias: needs at least ",
          a.two_sided ? 4 : 2, " buckets and a largest distance above the ", exact,
          " exact ones; got ", w.size(0), " and ", a.max_distance, in_module());
    Tensor y = empty({w.size(1), a.queries, a.keys}, w.dtype(), w.device());
    run(w.device(), Forward{{a}, w, y});
    if (saved) *saved = {a, w.shape(), y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dw = into.at(0, s.table, s.y.dtype, dy.device());
    if (dw.wanted()) run(dy.device(), Backward{{s.attrs}, dy, dw});
    return {dw};
  }
};

}  // namespace tally::ops
