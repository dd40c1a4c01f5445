#pragma once
#include "core/op.h"

namespace tally::ops {

// Linear layer, weights as (out, in).
//
//   forward    y[n,o]  = sum_i x[n,i] w[o,i] (+ b[o])
//   backward   dx[n,i] = sum_o dy[n,o] w[o,i]
//              dw[o,i] = sum_n dy[n,o] x[n,i]
//              db[o]   = sum_n dy[n,o]
//
//   x, dx (..., I)    w, dw (O, I)    b, db (O) or absent    y, dy (..., O)    saved: x, w
struct Linear {
  static constexpr const char* name = "linear";
  struct Attrs {};
  struct Saved {
    SavedTensor x, w;
    bool bias = false;
  };

  struct Forward {
    static constexpr const char* name = "linear.forward";
    static constexpr Kind kind = Kind::contraction;
    In x, w, b;
    Out y;
    static constexpr const char* formula = "y = x w^T (+ b)";
    static constexpr const char* operands = "x, w, b, y";
    auto views() const { return std::tie(x, w, b, y); }
    DType dtype() const { return x.dtype; }
    double products() const { return 2.0 * x.rows() * w.rows() * w.cols(); }
    ModelFlops model_flops() const { return {products(), products()}; }
    Cost cost() const {
      return flops(products() + (b.defined() ? y.numel() : 0)) + reads_if(y.numel() > 0, x, w, b) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t n = 0; n < y.rows(); ++n) {
        for (int64_t o = 0; o < w.rows(); ++o) {
          A sum(0);
          for (int64_t i = 0; i < w.cols(); ++i) sum += A(x.row<T>(n)[i]) * A(w.row<T>(o)[i]);
          if (b.defined()) sum += A(b.at<T>(o));
          y.put(y.row<T>(n)[o], sum);
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "linear.backward";
    static constexpr Kind kind = Kind::contraction;
    In dy, x, w;
    Out dx, dw, db;
    static constexpr const char* formula = "dx = dy w, dw = dy^T x, db = sum(dy)";
    static constexpr const char* operands = "dy, x, w, dx, dw, db";
    auto views() const { return std::tie(dy, x, w, dx, dw, db); }
    DType dtype() const { return dy.dtype; }
    double products() const {
      return 2.0 * dy.rows() * w.rows() * w.cols() *
             ((dx.defined() ? 1 : 0) + (dw.defined() ? 1 : 0));
    }
    ModelFlops model_flops() const { return {products(), products()}; }
    Cost cost() const {
      const bool some_in = w.cols() > 0, some_out = w.rows() > 0;  // else there are no products
      return flops(products() + (db.defined() ? dy.numel() : 0)) +
             reads_if(db.defined() || (some_in && (dx.defined() || dw.defined())), dy) +
             reads_if(dw.defined() && some_out, x) + reads_if(dx.defined() && dy.rows() > 0, w) +
             writes(dx, dw, db);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t rows = dy.rows(), out = w.rows(), in = w.cols();
      const auto product = [](const T& a, const T& b) { return A(a) * A(b); };
      for (int64_t n = 0; n < (dx.defined() ? rows : 0); ++n) {
        for (int64_t i = 0; i < in; ++i) {
          A sum(0);
          for (int64_t o = 0; o < out; ++o) sum += product(dy.row<T>(n)[o], w.row<T>(o)[i]);
          dx.put(dx.row<T>(n)[i], sum);
        }
      }
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t i = 0; i < (dw.defined() ? in : 0); ++i) {
          A sum(0);
          for (int64_t n = 0; n < rows; ++n) sum += product(dy.row<T>(n)[o], x.row<T>(n)[i]);
          dw.put(dw.row<T>(o)[i], sum);
        }
        if (!db.defined()) continue;
        A sum(0);
        for (int64_t n = 0; n < rows; ++n) sum += A(dy.row<T>(n)[o]);
        db.put(db.at<T>(o), sum);
      }
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b, const Attrs&,
                        Saved* saved) {
    check_defined(name, "x", x);
    check_defined(name, "weight", w);
    check(w.ndim() == 2 && x.ndim() >= 1 && x.size(-1) == w.size(1),
          "linear: weight must be (O, I) with I the last axis of x; x is ", x.shape(),
          ", weight is ", w.shape(), in_module(), "; weights are stored (out, in)");
    check(!b.defined() || b.shape() == Shape{w.size(0)},
          "linear: bias must be (O) with O = ", w.size(0), "; got ",
          b.defined() ? b.shape() : Shape{}, in_module());
    check_same_dtype(name, x, w, b);
    Tensor y = empty(x.shape().with_last(w.size(0)), x.dtype(), x.device());
    run(x.device(), Forward{x, w, b, y});
    if (saved) *saved = {x, w, b.defined()};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    const Tensor &x = s.x, &w = s.w;
    check_upstream(name, dy, x.shape().with_last(w.size(0)), x.dtype());
    const GradTensor dx = into.at(0, x), dw = into.at(1, w);
    const GradTensor db = s.bias ? into.at(2, {w.size(0)}, w.dtype(), w.device()) : GradTensor();
    run(dy.device(), Backward{dy, x, w, dx, dw, db});
    return {dx, dw, db};
  }
};

}  // namespace tally::ops
