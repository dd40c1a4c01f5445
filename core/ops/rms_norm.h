#pragma once
#include <vector>

#include "core/op.h"

namespace tally::ops {

// RMSNorm. Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4. Lecture claims L12-L17.
//
//   forward    y[i,d]  = x[i,d] r[i] w[d],      r[i] = 1 / sqrt(mean_d(x[i,d]^2) + eps)
//   backward   with n = x r and g = dy w:
//              dx[i,d] = r[i] (g[i,d] - n[i,d] mean_k(g[i,k] n[i,k]))
//              dw[d]   = sum_i dy[i,d] n[i,d]
//
//   x, y, dx, dy (..., D)    w, dw (D)    saved: x, w, r (...)
struct RMSNorm {
  static constexpr const char* name = "rms_norm";
  struct Attrs {
    double eps = 1e-6;
  };
  struct Saved {
    SavedTensor x, w, r;
  };

  struct Forward {
    static constexpr const char* name = "rms_norm.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, w;
    Out y, r;
    double eps;
    auto views() const { return std::tie(x, w, y, r); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = x.rows(), d = x.cols();
      return flops(n * (4 * d + 4)) + reads(x) + reads_if(n > 0, w) + writes(y, r);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const T* wi = w.row<T>(0);
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T* xi = x.row<T>(i);
        A square(0);
        for (int64_t d = 0; d < x.cols(); ++d) square += A(xi[d]) * A(xi[d]);
        const A ri = A(1) / sqrt(square / A(x.cols()) + A(eps));
        for (int64_t d = 0; d < x.cols(); ++d) y.put(y.row<T>(i)[d], A(xi[d]) * ri * A(wi[d]));
        r.at<A>(i) = ri;
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "rms_norm.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, x, w, r;
    Out dx, dw;
    auto views() const { return std::tie(dy, x, w, r, dx, dw); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = x.rows(), d = x.cols();
      const double for_dx = dx.defined() ? n * (9 * d + 1) : 0;
      const double for_dw = dw.defined() ? n * d * (dx.defined() ? 2 : 3) : 0;
      return flops(for_dx + for_dw) + reads(dy, x, r) + reads_if(dx.defined() && n > 0, w) + writes(dx, dw);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t cols = x.cols();
      std::vector<A> dw_sum(static_cast<size_t>(cols), A(0));
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T *dyi = dy.row<T>(i), *xi = x.row<T>(i), *wi = w.row<T>(0);
        const A ri = r.at<A>(i);
        A mean(0);
        for (int64_t d = 0; d < cols; ++d) {
          const A n = A(xi[d]) * ri;
          if (dx.defined()) mean += A(dyi[d]) * A(wi[d]) * n;
          if (dw.defined()) dw_sum[static_cast<size_t>(d)] += A(dyi[d]) * n;
        }
        if (!dx.defined()) continue;
        mean = mean / A(cols);
        for (int64_t d = 0; d < cols; ++d) {
          const A n = A(xi[d]) * ri, g = A(dyi[d]) * A(wi[d]);
          dx.put(dx.row<T>(i)[d], ri * (g - n * mean));
        }
      }
      if (!dw.defined()) return;
      for (int64_t d = 0; d < cols; ++d) dw.put(dw.at<T>(d), dw_sum[static_cast<size_t>(d)]);
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& w, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_defined(name, "weight", w);
    check(x.ndim() >= 1 && w.shape() == Shape{x.size(-1)}, "rms_norm: weight must be (D) with D the last axis of x; x is ",
          x.shape(), ", weight is ", w.shape(), in_module());
    check_same_dtype(name, x, w);
    check(a.eps >= 0, "rms_norm: eps must not be negative; got ", a.eps);
    Tensor y = empty_like(x), r = empty(x.shape().drop_last(), acc_dtype(x.dtype()), x.device());
    run(x.device(), Forward{x, w, y, r, a.eps});
    if (saved) *saved = {x, w, r};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    const GradTensor dx = into.at(0, s.x), dw = into.at(1, s.w);
    run(dy.device(), Backward{dy, s.x, s.w, s.r, dx, dw});
    return {dx, dw};
  }
};

}  // namespace tally::ops
