#pragma once
#include <vector>

#include "core/ops/layout.h"

namespace tally::ops {

/// Scalars of softmax and log-softmax.
struct SoftmaxAttrs {
  double scale = 1;  // the scores are scale x
};

// What softmax and log-softmax share: checks, and the rows with the part of the mask that each
// sees.
struct SoftmaxRows {
  static void check_inputs(const char* op, const Tensor& x, const Tensor& mask) {
    check_defined(op, "x", x);
    check_same_dtype(op, x);
    check(x.ndim() >= 1, op, ": x needs an axis to go over; it is a scalar", in_module());
    if (!mask.defined()) return;
    check(mask.dtype() == DType::u8, op, ": mask must be u8 (1 = allowed); got ", mask.dtype(),
          in_module());
    check(broadcast_shapes(op, x.shape(), mask.shape()) == x.shape(), op,
          ": mask must broadcast to x ", x.shape(), "; got ", mask.shape(), in_module());
  }
  /// Calls f(i, allowed) for each row i; allowed(j) says whether the mask lets element j take part.
  template <class T, class F>
  static void each(const View& x, const In& mask, F&& f) {
    Shape m = x.shape;
    for (int i = 0; i < m.ndim(); ++i) m[i] = 0;
    if (mask.defined()) m = broadcast_strides(mask, x.shape);
    int64_t row = 0;
    walk(x.shape.drop_last(), std::array{m.drop_last()}, [&](const auto& at) {
      f(row++, [&, first = at[0], step = m[-1]](int64_t j) {
        return !mask.defined() || mask.flag<T>(first + j * step);
      });
    });
  }
  /// Fills `row` with the scaled scores and raises `largest` to the greatest one that is allowed.
  /// Returns whether any is.
  template <class T, class Allowed>
  static bool scaled(const T* x, double scale, const Allowed& allowed, std::vector<acc_t<T>>& row,
                     acc_t<T>& largest) {
    using A = acc_t<T>;
    bool any = false;
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = scale == 1 ? A(x[j]) : A(x[j]) * A(scale);
      if (!allowed(static_cast<int64_t>(j))) continue;
      any = true;
      largest = larger(largest, row[j]);
    }
    return any;
  }
};

/// p becomes the softmax of as many scores: the row's maximum taken out, as everywhere.
template <class A, class T>
void softmax_of(const T* scores, std::vector<A>& p) {
  A top(-INFINITY), sum(0);
  for (size_t e = 0; e < p.size(); ++e) {
    p[e] = A(scores[e]);
    top = larger(top, p[e]);
  }
  for (A& v : p) {
    v = exp(v - top);
    sum += v;
  }
  for (A& v : p) v = v / sum;
}

// Softmax over the last axis, with an optional mask (u8, 1 = allowed, broadcasts to x).
//
//   forward    y[i,j]  = exp(s x[i,j] - m[i]) / sum_k exp(s x[i,k] - m[i]),   m[i] = max_k s x[i,k]
//   backward   dx[i,j] = s y[i,j] (dy[i,j] - sum_k dy[i,k] y[i,k])
//
//   x, y, dx, dy (..., C)    saved: y
//
// The row maximum is taken out: exp overflows at 88 in f32. What the mask forbids has y = 0 and
// dx = 0, and a row without anything allowed is all zeros. A row of nothing but -inf that is
// allowed is NaN, as 0 / 0 is: mask such rows.
struct Softmax {
  static constexpr const char* name = "softmax";
  using Attrs = SoftmaxAttrs;
  struct Saved {
    SavedTensor y;
    double scale = 1;
  };

  struct Forward {
    static constexpr const char* name = "softmax.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, mask;
    Out y;
    double scale;
    static constexpr const char* formula = "y = exp(x) / sum exp(x)";
    static constexpr const char* operands = "x, mask, y";
    auto views() const { return std::tie(x, mask, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops((scale == 1 ? 4.0 : 5.0) * static_cast<double>(x.numel())) + reads(x) +
             reads_if(x.numel() > 0, mask) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> row(static_cast<size_t>(x.cols()));
      SoftmaxRows::each<T>(x, mask, [&](int64_t i, auto&& allowed) {
        A largest(-INFINITY), sum(0);
        const bool any = SoftmaxRows::scaled(x.row<T>(i), scale, allowed, row, largest);
        const A shift = any ? largest : A(0);
        for (int64_t j = 0; j < x.cols(); ++j) {
          A& v = row[static_cast<size_t>(j)];
          v = exp(v - shift);
          if (!allowed(j)) v = A(0);
          sum += v;
        }
        const A total = any ? sum : A(1);
        for (int64_t j = 0; j < x.cols(); ++j) {
          y.put(y.row<T>(i)[j], row[static_cast<size_t>(j)] / total);
        }
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "softmax.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, y;
    Out dx;
    double scale;
    static constexpr const char* formula = "dx = y (dy - sum(dy y))";
    static constexpr const char* operands = "dy, y, dx";
    auto views() const { return std::tie(dy, y, dx); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      return flops((scale == 1 ? 4.0 : 5.0) * static_cast<double>(dy.numel())) + reads(dy, y) +
             writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < dy.rows(); ++i) {
        const T *dyi = dy.row<T>(i), *yi = y.row<T>(i);
        A sum(0);
        for (int64_t j = 0; j < dy.cols(); ++j) sum += A(dyi[j]) * A(yi[j]);
        for (int64_t j = 0; j < dy.cols(); ++j) {
          const A d = A(yi[j]) * (A(dyi[j]) - sum);
          dx.put(dx.row<T>(i)[j], scale == 1 ? d : d * A(scale));
        }
      }
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& mask, const Attrs& a, Saved* saved) {
    SoftmaxRows::check_inputs(name, x, mask);
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, mask, y, a.scale});
    if (saved) *saved = {y, a.scale};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = into.at(0, s.y);
    if (dx.wanted()) run(dy.device(), Backward{dy, s.y, dx, s.scale});
    return {dx, Tensor()};
  }
};

// The logarithm of softmax over the last axis, with an optional mask (u8, 1 = allowed).
//
//   forward    y[i,j]  = s x[i,j] - m[i] - log sum_k exp(s x[i,k] - m[i]),   m[i] = max_k s x[i,k]
//   backward   dx[i,j] = s (dy[i,j] - exp(y[i,j]) sum_k dy[i,k])
//
//   x, y, dx, dy (..., C)    saved: y, mask
//
// What the mask forbids has y = -inf and dx = 0, and the sums leave it out.
struct LogSoftmax {
  static constexpr const char* name = "log_softmax";
  using Attrs = SoftmaxAttrs;
  struct Saved {
    SavedTensor y, mask;
    double scale = 1;
  };

  struct Forward {
    static constexpr const char* name = "log_softmax.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, mask;
    Out y;
    double scale;
    static constexpr const char* formula = "y = x - log sum exp(x)";
    static constexpr const char* operands = "x, mask, y";
    auto views() const { return std::tie(x, mask, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(x.numel()), rows = static_cast<double>(x.rows());
      return flops((scale == 1 ? 4.0 : 5.0) * n + rows) + reads(x) + reads_if(n > 0, mask) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> row(static_cast<size_t>(x.cols()));
      SoftmaxRows::each<T>(x, mask, [&](int64_t i, auto&& allowed) {
        A largest(-INFINITY), sum(0);
        const bool any = SoftmaxRows::scaled(x.row<T>(i), scale, allowed, row, largest);
        const A shift = any ? largest : A(0);
        for (int64_t j = 0; j < x.cols(); ++j) {
          A& v = row[static_cast<size_t>(j)];
          v = v - shift;
          const A e = exp(v);
          sum += allowed(j) ? e : A(0);
        }
        const A log_sum = log(any ? sum : A(1));
        for (int64_t j = 0; j < x.cols(); ++j) {
          const A v = row[static_cast<size_t>(j)] - log_sum;
          y.put(y.row<T>(i)[j], allowed(j) ? v : A(-INFINITY));
        }
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "log_softmax.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, y, mask;
    Out dx;
    double scale;
    static constexpr const char* formula = "dx = dy - exp(y) sum(dy)";
    static constexpr const char* operands = "dy, y, mask, dx";
    auto views() const { return std::tie(dy, y, mask, dx); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      return flops((scale == 1 ? 4.0 : 5.0) * static_cast<double>(dy.numel())) + reads(dy, y) +
             reads_if(dy.numel() > 0, mask) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      SoftmaxRows::each<T>(dy, mask, [&](int64_t i, auto&& allowed) {
        const T *dyi = dy.row<T>(i), *yi = y.row<T>(i);
        A sum(0);
        for (int64_t j = 0; j < dy.cols(); ++j) {
          const A g(dyi[j]);
          sum += allowed(j) ? g : A(0);
        }
        for (int64_t j = 0; j < dy.cols(); ++j) {
          A d = A(dyi[j]) - exp(A(yi[j])) * sum;
          if (scale != 1) d = d * A(scale);
          dx.put(dx.row<T>(i)[j], allowed(j) ? d : A(0));
        }
      });
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& mask, const Attrs& a, Saved* saved) {
    SoftmaxRows::check_inputs(name, x, mask);
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, mask, y, a.scale});
    if (saved) *saved = {y, mask, a.scale};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = into.at(0, s.y);
    if (dx.wanted()) run(dy.device(), Backward{dy, s.y, s.mask, dx, s.scale});
    return {dx, Tensor()};
  }
};

}  // namespace tally::ops
