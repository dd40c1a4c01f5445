#pragma once
#include "core/ops/update.h"

namespace tally::ops {

// Gradient descent with momentum: one step of one parameter. Robbins & Monro 1951; Polyak 1964
// (momentum); Sutskever et al. 2013 (Nesterov's form of it). The order of operations is PyTorch's.
//
//   g = s dw + l2 w
//   m = momentum m + (1 - dampening) g     at the first step m = g, undamped
//   u = m,  or g + momentum m (nesterov),  or g where there is no m
//   w = keep w - lr u
//
//   w, dw, m (...), one shape; w, m in place; m absent: no momentum    s (1) or absent
struct SgdUpdate {
  static constexpr const char* name = "sgd_update";
  struct Attrs : UpdateAttrs {
    double momentum = 0, dampening = 0;
    bool nesterov = false;
  };

  struct Call {
    static constexpr const char* name = "sgd_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, m;
    Attrs attrs;
    WeightDecay decay{};
    double rate = 0;  // 1 - dampening
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& moment,
         const Attrs& a)
        : dw(gradient), scale(factor), w(weight), m(moment), attrs(a) {
      derive();
    }
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      derive();
    }
    void derive() {
      decay = WeightDecay(attrs);
      rate = attrs.step == 1 ? 1 : 1 - attrs.dampening;  // m is 0 before the first step
    }
    static constexpr const char* formula =
        "g = scale dw + l2 w, m = momentum m + (1 - dampening) g, w = keep w - lr m (nesterov: g + "
        "momentum m)";
    static constexpr const char* operands = "dw, scale, w, m";
    auto views() const { return std::tie(dw, scale, w, m); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(w.numel());
      const double momentum = !m.defined() ? 0 : attrs.nesterov ? 5 : 3;
      return flops(n * (decay.flops(scale) + momentum + 2)) + reads(dw) + reads_if(n > 0, scale) +
             updates(w, m);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(w, [&](int64_t i, int64_t d) {
        T& wi = w.row<T>(i)[d];
        const A weight = A(wi), g = decay.gradient<A>(dw.row<T>(i)[d], scale, weight);
        A u = g;
        if (m.defined()) {
          A& mi = m.row<A>(i)[d];
          u = A(mi) * A(attrs.momentum) + A(rate) * g;
          mi = u;
          if (attrs.nesterov) u = g + A(attrs.momentum) * u;
        }
        wi = T(decay.weight(weight) - A(attrs.rate()) * u);
      });
    }
  };

  /// Takes the step. `m` undefined: no momentum. Error for shapes or types that differ and for odd
  /// numbers.
  static void into(const Tensor& w, const Tensor& m, const Tensor& dw, const Tensor& scale,
                   const Attrs& a) {
    check_update(name, w, dw, scale);
    if (m.defined()) check_kept(name, "the momentum", w, m);
    check_attrs(a);
    check(m.defined() || a.momentum == 0, "sgd_update: momentum ", a.momentum,
          " needs a tensor that keeps it", in_module());
    run(w.device(), Call(dw, scale, w, m, a));
  }
  static void check_attrs(const Attrs& a) {
    ops::check_attrs(name, a);
    check_share(name, "momentum", a.momentum);
    check(a.dampening >= 0 && a.dampening <= 1, "sgd_update: dampening must be in 0..1; got ",
          a.dampening);
    check(!a.nesterov || (a.momentum > 0 && a.dampening == 0),
          "sgd_update: nesterov needs momentum above 0 and no dampening; got ", a.momentum, " and ",
          a.dampening);
  }
};

}  // namespace tally::ops
