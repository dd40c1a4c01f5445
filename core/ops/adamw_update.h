#pragma once
#include "core/op.h"
#include "core/ops/no_gradient.h"

namespace tally::ops {

// AdamW: one step of one parameter. Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2;
// Kingma & Ba 2014, arXiv:1412.6980. The order of operations is PyTorch's.
//
//   g = s dw                                   s: the clip factor, on the device
//   m = m + (1 - beta1) (g - m)
//   v = beta2 v + (1 - beta2) g^2
//   w = (1 - lr decay) w - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//
//   w, dw, m, v (...), one shape; w, m, v in place    s (1) or absent: 1    t = 1, 2, ...
//
// Adam with L2 (decoupled = false): g = s dw + decay w, and w is not shrunk. AMSGrad (Reddi, Kale &
// Kumar 2018, arXiv:1904.09237): largest = max(largest, v), in place, takes the place of v in w.
//
// Clipping costs no pass of its own: the factor is read here. The step count is the caller's, who
// saves and restores it: a count that starts again at 1 takes steps that are far too long.
struct AdamWUpdate {
  static constexpr const char* name = "adamw_update";
  struct Attrs {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
    int64_t step = 1;     // t of the step that is taken
    double lr_scale = 1;  // times lr
    bool decoupled = true;
  };

  struct Call {
    static constexpr const char* name = "adamw_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, m, v, largest;
    Attrs attrs;
    double keep = 0, l2 = 0;                 // 1 - lr decay, or decay
    double beta2 = 0, rate1 = 0, rate2 = 0;  // rates: 1 - beta
    double step_size = 0;                    // lr / (1 - beta1^t)
    double root_correction = 0, eps = 0;     // sqrt(1 - beta2^t)
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& first,
         const InOut& second, const InOut& maximum, const Attrs& a)
        : dw(gradient), scale(factor), w(weight), m(first), v(second), largest(maximum), attrs(a) {
      derive();
    }
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      derive();
    }
    void derive() {
      const double t = static_cast<double>(attrs.step), lr = attrs.lr * attrs.lr_scale;
      keep = 1 - lr * attrs.weight_decay;
      l2 = attrs.weight_decay;
      beta2 = attrs.beta2, rate1 = 1 - attrs.beta1, rate2 = 1 - attrs.beta2;
      step_size = lr / (1 - std::pow(attrs.beta1, t));
      root_correction = std::sqrt(1 - std::pow(attrs.beta2, t));
      eps = attrs.eps;
    }
    static constexpr const char* formula =
        "g = scale dw, m += (1 - beta1) (g - m), v = beta2 v + (1 - beta2) g^2, w = (1 - lr decay) "
        "w - lr m^ / (sqrt(v^) + eps)";
    static constexpr const char* operands = "dw, scale, w, m, v, largest";
    auto views() const { return std::tie(dw, scale, w, m, v, largest); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(w.numel());
      return flops(n * ((scale.defined() ? 15 : 14) + (attrs.decoupled ? 0 : 1))) + reads(dw) +
             reads_if(n > 0, scale) + updates(w, m, v, largest);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < w.rows(); ++i) {
        T* wi = w.row<T>(i);
        A *mi = m.row<A>(i), *vi = v.row<A>(i);
        for (int64_t d = 0; d < w.cols(); ++d) {
          const A raw = A(dw.row<T>(i)[d]), weight = A(wi[d]);
          const A clipped = scale.defined() ? raw * scale.at<A>(0) : raw;
          const A g = attrs.decoupled ? clipped : clipped + A(l2) * weight;
          const A first = A(mi[d]) + A(rate1) * (g - A(mi[d]));
          const A second = A(vi[d]) * A(beta2) + A(rate2) * g * g;
          const A size = sqrt(bound(i, d, second)) / A(root_correction) + A(eps);
          mi[d] = first;
          vi[d] = second;
          wi[d] = T((attrs.decoupled ? weight * A(keep) : weight) - A(step_size) * (first / size));
        }
      }
    }
    /// What the step is divided by the root of.
    template <class A>
    A bound(int64_t i, int64_t d, const A& second) const {
      if (!largest.defined()) return second;
      A& most = largest.row<A>(i)[d];
      most = larger(A(most), second);
      return most;
    }
  };

  /// Takes the step; with `largest` AMSGrad's. Error for shapes or types that differ, for odd
  /// hyperparameters, and for bf16: steps below 1/256 of a weight would be rounded away.
  static void into(const Tensor& w, const Tensor& m, const Tensor& v, const Tensor& dw,
                   const Tensor& scale, const Attrs& a, const Tensor& largest = {}) {
    check_defined(name, "the parameter", w);
    check_defined(name, "the gradient", dw);
    check_defined(name, "the first moment", m);
    check_defined(name, "the second moment", v);
    check_no_gradient(name, "the gradient", dw);
    check_no_gradient(name, "the scale", scale);
    check(dw.shape() == w.shape() && m.shape() == w.shape() && v.shape() == w.shape(),
          "adamw_update: gradient and moments must have the shape of the parameter ", w.shape(),
          "; got ", dw.shape(), ", ", m.shape(), " and ", v.shape(), in_module());
    check(w.dtype() != DType::bf16 && w.dtype() != DType::f16,
          "adamw_update: parameters must be f32 or f64; got ", w.dtype(), in_module(),
          "; small steps would be rounded away: keep an f32 master copy");
    check_same_dtype(name, w, dw);
    check(m.dtype() == acc_dtype(w.dtype()) && v.dtype() == m.dtype(),
          "adamw_update: moments must be ", acc_dtype(w.dtype()), " for parameters in ", w.dtype(),
          "; got ", m.dtype(), " and ", v.dtype(), in_module());
    check(!scale.defined() || (scale.numel() == 1 && scale.dtype() == m.dtype()),
          "adamw_update: the scale must be one number in ", m.dtype(), "; got ",
          scale.defined() ? scale.shape() : Shape{}, " in ",
          scale.defined() ? scale.dtype() : m.dtype(), in_module());
    check_attrs(a);
    check(!largest.defined() || (largest.shape() == w.shape() && largest.dtype() == m.dtype()),
          "adamw_update: the largest second moment must have the shape of the parameter ",
          w.shape(), " and the type of the moments; got ",
          largest.defined() ? largest.shape() : Shape{}, in_module());
    run(w.device(), Call(dw, scale, w, m, v, largest, a));
  }
  static void check_attrs(const Attrs& a) {
    check(std::isfinite(a.lr) && a.lr >= 0,
          "adamw_update: lr must be finite and not negative; got ", a.lr);
    check(a.beta1 >= 0 && a.beta1 < 1 && a.beta2 >= 0 && a.beta2 < 1,
          "adamw_update: beta1 and beta2 must be in 0..1, 1 left out; got ", a.beta1, " and ",
          a.beta2);
    check(std::isfinite(a.eps) && a.eps >= 0,
          "adamw_update: eps must be finite and not negative; got ", a.eps);
    check(std::isfinite(a.weight_decay) && a.weight_decay >= 0,
          "adamw_update: weight_decay must be finite and not negative; got ", a.weight_decay);
    check(std::isfinite(a.lr_scale) && a.lr_scale >= 0,
          "adamw_update: lr_scale must be finite and not negative; got ", a.lr_scale);
    check(a.step >= 1, "adamw_update: the first step has number 1; got ", a.step);
  }
};

}  // namespace tally::ops
