#pragma once
#include <vector>

#include "core/ops/rms_norm.h"

namespace tally::ops {

// LayerNorm. Ba, Kiros & Hinton 2016, arXiv:1607.06450, eq. 4. Lecture claims L12-L17.
//
//   forward    y[i,d]  = n[i,d] w[d] + b[d],   n[i,d] = (x[i,d] - m[i]) r[i]
//              m[i] = mean_d(x[i,d]),   r[i] = 1 / sqrt(mean_d((x[i,d] - m[i])^2) + eps)
//   backward   with g = dy w:
//              dx[i,d] = r[i] (g[i,d] - mean_k(g[i,k]) - n[i,d] mean_k(g[i,k] n[i,k]))
//              dw[d]   = sum_i dy[i,d] n[i,d]
//              db[d]   = sum_i dy[i,d]
//
//   x, y, dx, dy (..., D)    w, b, dw, db (D)    saved: x, w, m (...), r (...)
//
// Three forms: weight and bias, weight alone (PaLM, Command R), neither (OLMo 1). With
// `unit_offset` the gain is 1 + w (Nemotron). The variance is summed from x - m in a second pass:
// mean(x^2) - m^2 loses all digits when the mean is large.
struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  struct Attrs {
    double eps = 1e-5;
    bool unit_offset = false;
  };
  struct Saved {
    SavedTensor x, w, m, r;
    bool bias = false, unit_offset = false;
  };

  struct Forward {
    static constexpr const char* name = "layer_norm.forward";
    static constexpr Kind kind = Kind::normalization;
    In x, w, b;
    Out y, m, r;
    double eps;
    bool unit_offset;
    static constexpr const char* formula =
        "y = (x - m) r w + b, m = mean(x), r = 1 / sqrt(var(x) + eps)";
    static constexpr const char* operands = "x, w, b, y, m, r";
    auto views() const { return std::tie(x, w, b, y, m, r); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = x.rows(), d = x.cols(), shift = b.defined() ? 1 : 0;
      return flops(n * ((6 + RMSNorm::gain_flops(w, unit_offset) + shift) * d + 5)) + reads(x) +
             reads_if(n > 0, w, b) + writes(y, m, r);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const T *wi = w.row<T>(0), *bi = b.row<T>(0);
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T* xi = x.row<T>(i);
        A mean(0), square(0);
        for (int64_t d = 0; d < x.cols(); ++d) mean += A(xi[d]);
        mean = mean / A(x.cols());
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A c = A(xi[d]) - mean;
          square += c * c;
        }
        const A ri = A(1) / sqrt(square / A(x.cols()) + A(eps));
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A n = RMSNorm::times_gain((A(xi[d]) - mean) * ri, wi, d, unit_offset);
          y.put(y.row<T>(i)[d], bi ? n + A(bi[d]) : n);
        }
        m.at<A>(i) = mean;
        r.at<A>(i) = ri;
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "layer_norm.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, x, w, m, r;
    Out dx, dw, db;
    bool unit_offset;
    std::byte* scratch = nullptr;
    static constexpr const char* formula =
        "n = (x - m) r, g = dy w, dx = r (g - mean(g) - n mean(g n)), dw = sum(dy n), db = sum(dy)";
    static constexpr const char* operands = "dy, x, w, m, r, dx, dw, db";
    auto views() const { return std::tie(dy, x, w, m, r, dx, dw, db); }
    DType dtype() const { return x.dtype; }
    size_t workspace() const {
      return static_cast<size_t>(kNormPieces * (dw.numel() + db.numel())) *
             size_of(acc_dtype(x.dtype));
    }
    bool needs_n() const { return dx.defined() || dw.defined(); }
    Cost cost() const {
      const double n = x.rows(), d = x.cols();
      const double for_dx =
          dx.defined() ? n * ((11 + 2 * RMSNorm::gain_flops(w, unit_offset)) * d + 2) : 0;
      const double for_dw = dw.defined() ? n * d * (dx.defined() ? 2 : 4) : 0;
      const double for_db = db.defined() ? n * d : 0;
      return flops(for_dx + for_dw + for_db) + reads(dy) + reads_if(needs_n(), x, m, r) +
             reads_if(dx.defined() && n > 0, w) + writes(dx, dw, db);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t cols = x.cols();
      std::vector<A> dw_sum(static_cast<size_t>(cols), A(0)),
          db_sum(static_cast<size_t>(cols), A(0));
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T* dyi = dy.row<T>(i);
        if (needs_n()) row<T>(i, dw_sum.data());
        for (int64_t d = 0; d < (db.defined() ? cols : 0); ++d)
          db_sum[static_cast<size_t>(d)] += A(dyi[d]);
      }
      for (int64_t d = 0; d < (dw.defined() ? cols : 0); ++d)
        dw.put(dw.at<T>(d), dw_sum[static_cast<size_t>(d)]);
      for (int64_t d = 0; d < (db.defined() ? cols : 0); ++d)
        db.put(db.at<T>(d), db_sum[static_cast<size_t>(d)]);
    }
    // Row i of dx, and its part of dw.
    template <class T, class A>
    void row(int64_t i, A* dw_sum) const {
      const T *dyi = dy.row<T>(i), *xi = x.row<T>(i), *wi = w.row<T>(0);
      const A mean = m.at<A>(i), ri = r.at<A>(i);
      A g_mean(0), gn_mean(0);
      for (int64_t d = 0; d < x.cols(); ++d) {
        const A n = (A(xi[d]) - mean) * ri;
        if (dw.defined()) dw_sum[d] += A(dyi[d]) * n;
        if (!dx.defined()) continue;
        const A g = RMSNorm::times_gain(A(dyi[d]), wi, d, unit_offset);
        g_mean += g;
        gn_mean += g * n;
      }
      if (!dx.defined()) return;
      g_mean = g_mean / A(x.cols());
      gn_mean = gn_mean / A(x.cols());
      for (int64_t d = 0; d < x.cols(); ++d) {
        const A n = (A(xi[d]) - mean) * ri, g = RMSNorm::times_gain(A(dyi[d]), wi, d, unit_offset);
        dx.put(dx.row<T>(i)[d], ri * (g - g_mean - n * gn_mean));
      }
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b, const Attrs& a,
                        Saved* saved) {
    check_defined(name, "x", x);
    check(x.ndim() >= 1 && (!w.defined() || w.shape() == Shape{x.size(-1)}),
          "layer_norm: weight must be (D) with D the last axis of x; x is ", x.shape(),
          ", weight is ", w.defined() ? w.shape() : Shape{}, in_module());
    check(!b.defined() || (w.defined() && b.shape() == w.shape()),
          "layer_norm: bias must be (D) beside a weight (D), D = ", x.size(-1), "; bias is ",
          b.defined() ? b.shape() : Shape{}, w.defined() ? "" : ", weight is missing", in_module());
    check_same_dtype(name, x, w, b);
    check(a.eps >= 0, "layer_norm: eps must not be negative; got ", a.eps, in_module());
    const Shape rows = x.shape().drop_last();
    Tensor y = empty_like(x), m = empty(rows, acc_dtype(x.dtype()), x.device()), r = empty_like(m);
    run(x.device(), Forward{x, w, b, y, m, r, a.eps, a.unit_offset});
    if (saved) *saved = {x, w, m, r, b.defined(), a.unit_offset};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.x);
    const GradTensor dx = into.at(0, s.x), dw = into.at(1, s.w);
    const GradTensor db = s.bias ? into.at(2, s.w) : GradTensor();
    run(dy.device(), Backward{dy, s.x, s.w, s.m, s.r, dx, dw, db, s.unit_offset});
    return {dx, dw, db};
  }
};

}  // namespace tally::ops
