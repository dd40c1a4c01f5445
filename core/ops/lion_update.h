#pragma once
#include "core/ops/update.h"

namespace tally::ops {

// Lion: one step of one parameter. Chen et al. 2023, arXiv:2302.06675, program 1.
//
//   g = s dw + l2 w
//   u = sign(beta1 m + (1 - beta1) g)      sign(0) = 0; a NaN stays one
//   w = keep w - lr u
//   m = beta2 m + (1 - beta2) g
//
//   w, dw, m (...), one shape; w, m in place    s (1) or absent
//
// Every weight moves by lr whatever the size of its gradient, so lr is three to ten times smaller
// and the decay as much larger than AdamW's.
struct LionUpdate {
  static constexpr const char* name = "lion_update";
  struct Attrs : UpdateAttrs {
    double beta1 = 0.9, beta2 = 0.99;
  };

  struct Call {
    static constexpr const char* name = "lion_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, m;
    Attrs attrs;
    WeightDecay decay{};
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& moment,
         const Attrs& a)
        : dw(gradient), scale(factor), w(weight), m(moment), attrs(a), decay(a) {}
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      decay = WeightDecay(attrs);
    }
    static constexpr const char* formula =
        "g = scale dw + l2 w, w = keep w - lr sign(beta1 m + (1 - beta1) g), m = beta2 m + (1 - "
        "beta2) g";
    static constexpr const char* operands = "dw, scale, w, m";
    auto views() const { return std::tie(dw, scale, w, m); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(w.numel());
      return flops(n * (decay.flops(scale) + 8)) + reads(dw) + reads_if(n > 0, scale) +
             updates(w, m);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(w, [&](int64_t i, int64_t d) {
        T& wi = w.row<T>(i)[d];
        A& mi = m.row<A>(i)[d];
        const A weight = A(wi), g = decay.gradient<A>(dw.row<T>(i)[d], scale, weight);
        const A mixed = A(mi) * A(attrs.beta1) + A(1 - attrs.beta1) * g;
        const A u = mixed > A(0) ? A(1) : mixed < A(0) ? A(-1) : mixed;
        wi = T(decay.weight(weight) - A(attrs.rate()) * u);
        mi = A(mi) * A(attrs.beta2) + A(1 - attrs.beta2) * g;
      });
    }
  };

  /// Takes the step. Error for shapes or types that differ and for odd numbers.
  static void into(const Tensor& w, const Tensor& m, const Tensor& dw, const Tensor& scale,
                   const Attrs& a) {
    check_update(name, w, dw, scale);
    check_kept(name, "the momentum", w, m);
    check_attrs(a);
    run(w.device(), Call(dw, scale, w, m, a));
  }
  static void check_attrs(const Attrs& a) {
    ops::check_attrs(name, a);
    check_share(name, "beta1", a.beta1);
    check_share(name, "beta2", a.beta2);
  }
};

}  // namespace tally::ops
