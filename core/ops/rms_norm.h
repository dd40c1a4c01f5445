#pragma once
#include <vector>

#include "core/op.h"

namespace tally::ops {

/// Into so many pieces a backend may cut the rows of a normalization's backward pass: each sums its
/// part of the weight's gradient into a line of the call's scratch, and the lines are added in
/// order.
inline constexpr int64_t kNormPieces = 16;

// RMSNorm. Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4. Lecture claims L12-L17.
//
//   forward    y[i,d]  = n[i,d] w[d],   n[i,d] = x[i,d] r[i]
//              r[i]    = 1 / sqrt(mean_d(x[i,d]^2) + eps)
//   backward   with g = dy w:
//              dx[i,d] = r[i] (g[i,d] - n[i,d] mean_k(g[i,k] n[i,k]))
//              dw[d]   = sum_i dy[i,d] n[i,d]
//
//   x, y, dx, dy (..., D)    w, dw (D) or absent: 1    saved: x, w, r (...)
//
// With `unit_offset` the gain is 1 + w (Gemma). eps is inside the root, squares are summed in the
// accumulator. `round_before_weight`: n is rounded to the element type before the gain multiplies
// it, as LLaMA does in bf16 (no difference in f32 and f64; the backward works with the unrounded
// n).
struct RMSNorm {
  static constexpr const char* name = "rms_norm";
  struct Attrs {
    double eps = 1e-6;
    bool unit_offset = false;
    bool round_before_weight = false;
  };
  struct Saved {
    SavedTensor x, w, r;
    Attrs attrs;
  };
  /// Operations an element for the product with the gain.
  static double gain_flops(const In& w, bool unit_offset) {
    return w.defined() ? (unit_offset ? 2 : 1) : 0;
  }
  /// a times the gain of column d; `w` null: a.
  template <class A, class T>
  static A times_gain(const A& a, const T* w, int64_t d, bool unit_offset) {
    if (!w) return a;
    return unit_offset ? a * (A(1) + A(w[d])) : a * A(w[d]);
  }

  struct Forward {
    static constexpr const char* name = "rms_norm.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, w;
    Out y, r;
    double eps;
    bool unit_offset, round_before_weight;
    static constexpr const char* formula = "y = x r w, r = 1 / sqrt(mean(x^2) + eps)";
    static constexpr const char* operands = "x, w, y, r";
    auto views() const { return std::tie(x, w, y, r); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = x.rows(), d = x.cols();
      return flops(n * ((3 + gain_flops(w, unit_offset)) * d + 4)) + reads(x) + reads_if(n > 0, w) +
             writes(y, r);
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
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A n = A(xi[d]) * ri, rounded = round_before_weight ? A(T(n)) : n;
          y.put(y.row<T>(i)[d], times_gain(rounded, wi, d, unit_offset));
        }
        r.at<A>(i) = ri;
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "rms_norm.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, x, w, r;
    Out dx, dw;
    bool unit_offset;
    std::byte* scratch = nullptr;
    static constexpr const char* formula =
        "n = x r, g = dy w, dx = r (g - n mean(g n)), dw = sum(dy n)";
    static constexpr const char* operands = "dy, x, w, r, dx, dw";
    auto views() const { return std::tie(dy, x, w, r, dx, dw); }
    DType dtype() const { return x.dtype; }
    size_t workspace() const {
      return static_cast<size_t>(kNormPieces * dw.numel()) * size_of(acc_dtype(x.dtype));
    }
    Cost cost() const {
      const double n = x.rows(), d = x.cols();
      const double for_dx = dx.defined() ? n * ((7 + 2 * gain_flops(w, unit_offset)) * d + 1) : 0;
      const double for_dw = dw.defined() ? n * d * (dx.defined() ? 2 : 3) : 0;
      return flops(for_dx + for_dw) + reads(dy, x, r) + reads_if(dx.defined() && n > 0, w) +
             writes(dx, dw);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t cols = x.cols();
      const T* wi = w.row<T>(0);
      std::vector<A> dw_sum(static_cast<size_t>(cols), A(0));
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T *dyi = dy.row<T>(i), *xi = x.row<T>(i);
        const A ri = r.at<A>(i);
        A mean(0);
        for (int64_t d = 0; d < cols; ++d) {
          const A n = A(xi[d]) * ri;
          if (dx.defined()) mean += times_gain(A(dyi[d]), wi, d, unit_offset) * n;
          if (dw.defined()) dw_sum[static_cast<size_t>(d)] += A(dyi[d]) * n;
        }
        if (!dx.defined()) continue;
        mean = mean / A(cols);
        for (int64_t d = 0; d < cols; ++d) {
          const A n = A(xi[d]) * ri, g = times_gain(A(dyi[d]), wi, d, unit_offset);
          dx.put(dx.row<T>(i)[d], ri * (g - n * mean));
        }
      }
      if (!dw.defined()) return;
      for (int64_t d = 0; d < cols; ++d) dw.put(dw.at<T>(d), dw_sum[static_cast<size_t>(d)]);
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& w, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check(x.ndim() >= 1 && (!w.defined() || w.shape() == Shape{x.size(-1)}),
          "rms_norm: weight must be (D) with D the last axis of x; x is ", x.shape(),
          ", weight is ", w.defined() ? w.shape() : Shape{}, in_module());
    check_same_dtype(name, x, w);
    check(a.eps >= 0, "rms_norm: eps must not be negative; got ", a.eps, in_module());
    Tensor y = empty_like(x), r = empty(x.shape().drop_last(), acc_dtype(x.dtype()), x.device());
    run(x.device(), Forward{x, w, y, r, a.eps, a.unit_offset, a.round_before_weight});
    if (saved) *saved = {x, w, r, a};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.x);
    const GradTensor dx = into.at(0, s.x), dw = into.at(1, s.w);
    run(dy.device(), Backward{dy, s.x, s.w, s.r, dx, dw, s.attrs.unit_offset});
    return {dx, dw};
  }
};

}  // namespace tally::ops
