#pragma once
#include "core/ops/update.h"

namespace tally::ops {

// Adagrad: one step of one parameter. Duchi, Hazan & Singer 2011, JMLR 12. As in PyTorch.
//
//   g = s dw + l2 w,   v = v + g^2,   w = keep w - lr / (1 + (t - 1) lr_decay) g / (sqrt(v) + eps)
//
//   w, dw, v (...), one shape; w, v in place    s (1) or absent    t = 1, 2, ...
struct AdagradUpdate {
  static constexpr const char* name = "adagrad_update";
  struct Attrs : UpdateAttrs {
    double lr_decay = 0, eps = 1e-10;
  };

  struct Call {
    static constexpr const char* name = "adagrad_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, v;
    Attrs attrs;
    WeightDecay decay{};
    double size = 0;
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& second,
         const Attrs& a)
        : dw(gradient), scale(factor), w(weight), v(second), attrs(a) {
      derive();
    }
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      derive();
    }
    void derive() {
      decay = WeightDecay(attrs);
      size = attrs.rate() / (1 + static_cast<double>(attrs.step - 1) * attrs.lr_decay);
    }
    static constexpr const char* formula =
        "g = scale dw + l2 w, v = v + g^2, w = keep w - lr g / (sqrt(v) + eps)";
    static constexpr const char* operands = "dw, scale, w, v";
    auto views() const { return std::tie(dw, scale, w, v); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(w.numel());
      return flops(n * (decay.flops(scale) + 7)) + reads(dw) + reads_if(n > 0, scale) +
             updates(w, v);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(w, [&](int64_t i, int64_t d) {
        T& wi = w.row<T>(i)[d];
        A& vi = v.row<A>(i)[d];
        const A weight = A(wi), g = decay.gradient<A>(dw.row<T>(i)[d], scale, weight);
        const A second = A(vi) + g * g;
        vi = second;
        wi = T(decay.weight(weight) - A(size) * (g / (sqrt(second) + A(attrs.eps))));
      });
    }
  };

  /// Takes the step. Error for shapes or types that differ and for odd numbers.
  static void into(const Tensor& w, const Tensor& v, const Tensor& dw, const Tensor& scale,
                   const Attrs& a) {
    check_update(name, w, dw, scale);
    check_kept(name, "the sum of squares", w, v);
    check_attrs(a);
    run(w.device(), Call(dw, scale, w, v, a));
  }
  static void check_attrs(const Attrs& a) {
    ops::check_attrs(name, a);
    check_number(name, "lr_decay", a.lr_decay);
    check_number(name, "eps", a.eps);
  }
};

// RMSprop: one step of one parameter. Hinton 2012, lecture 6e. As in PyTorch.
//
//   g = s dw + l2 w,   v = alpha v + (1 - alpha) g^2,   u = g / (sqrt(v) + eps)
//   m = momentum m + u;   w = keep w - lr m      m absent: w = keep w - lr u
//
//   w, dw, v, m (...), one shape; w, v, m in place    s (1) or absent
struct RmspropUpdate {
  static constexpr const char* name = "rmsprop_update";
  struct Attrs : UpdateAttrs {
    double alpha = 0.99, momentum = 0, eps = 1e-8;
  };

  struct Call {
    static constexpr const char* name = "rmsprop_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, v, m;
    Attrs attrs;
    WeightDecay decay{};
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& second,
         const InOut& moment, const Attrs& a)
        : dw(gradient), scale(factor), w(weight), v(second), m(moment), attrs(a), decay(a) {}
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      decay = WeightDecay(attrs);
    }
    static constexpr const char* formula =
        "g = scale dw + l2 w, v = alpha v + (1 - alpha) g^2, m = momentum m + g / (sqrt(v) + eps), "
        "w = keep w - lr m";
    static constexpr const char* operands = "dw, scale, w, v, m";
    auto views() const { return std::tie(dw, scale, w, v, m); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(w.numel()), momentum = m.defined() ? 2 : 0;
      return flops(n * (decay.flops(scale) + 9 + momentum)) + reads(dw) + reads_if(n > 0, scale) +
             updates(w, v, m);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(w, [&](int64_t i, int64_t d) {
        T& wi = w.row<T>(i)[d];
        A& vi = v.row<A>(i)[d];
        const A weight = A(wi), g = decay.gradient<A>(dw.row<T>(i)[d], scale, weight);
        const A second = A(vi) * A(attrs.alpha) + A(1 - attrs.alpha) * g * g;
        vi = second;
        A u = g / (sqrt(second) + A(attrs.eps));
        if (m.defined()) {
          A& mi = m.row<A>(i)[d];
          u = A(mi) * A(attrs.momentum) + u;
          mi = u;
        }
        wi = T(decay.weight(weight) - A(attrs.rate()) * u);
      });
    }
  };

  /// Takes the step. `m` undefined: no momentum. Error for shapes or types that differ and for odd
  /// numbers.
  static void into(const Tensor& w, const Tensor& v, const Tensor& m, const Tensor& dw,
                   const Tensor& scale, const Attrs& a) {
    check_update(name, w, dw, scale);
    check_kept(name, "the second moment", w, v);
    if (m.defined()) check_kept(name, "the momentum", w, m);
    check_attrs(a);
    check(m.defined() || a.momentum == 0, "rmsprop_update: momentum ", a.momentum,
          " needs a tensor that keeps it", in_module());
    run(w.device(), Call(dw, scale, w, v, m, a));
  }
  static void check_attrs(const Attrs& a) {
    ops::check_attrs(name, a);
    check_share(name, "alpha", a.alpha);
    check_share(name, "momentum", a.momentum);
    check_number(name, "eps", a.eps);
  }
};

// NAdam: Adam with Nesterov's momentum, one step of one parameter. Dozat 2016. As in PyTorch, with
// its schedule of the momentum.
//
//   g = s dw + l2 w,   m = m + (1 - beta1) (g - m),   v = beta2 v + (1 - beta2) g^2
//   d = sqrt(v / (1 - beta2^t)) + eps
//   w = keep w - lr (1 - mu_t) / (1 - P_t) g / d - lr mu_{t+1} / (1 - P_t mu_{t+1}) m / d
//   mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2),   P_t = mu_1 ... mu_t
//
//   w, dw, m, v (...), one shape; w, m, v in place    s (1) or absent    t = 1, 2, ...
struct NadamUpdate {
  static constexpr const char* name = "nadam_update";
  struct Attrs : UpdateAttrs {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum_decay = 4e-3;
    double product = 0;  // P_t: nadam_momentum() times that of the steps before
  };
  /// mu_t.
  static double momentum_of(int64_t t, double beta1, double decay) {
    return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * decay));
  }

  struct Call {
    static constexpr const char* name = "nadam_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, m, v;
    Attrs attrs;
    WeightDecay decay{};
    double root_correction = 0, by_gradient = 0, by_moment = 0;
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& first,
         const InOut& second, const Attrs& a)
        : dw(gradient), scale(factor), w(weight), m(first), v(second), attrs(a), decay(a) {
      const double t = static_cast<double>(a.step);
      const double now = momentum_of(a.step, a.beta1, a.momentum_decay),
                   next = momentum_of(a.step + 1, a.beta1, a.momentum_decay);
      root_correction = std::sqrt(1 - std::pow(a.beta2, t));
      by_gradient = a.rate() * (1 - now) / (1 - a.product);
      by_moment = a.rate() * next / (1 - a.product * next);
    }
    static constexpr const char* formula =
        "g = scale dw + l2 w, m += (1 - beta1) (g - m), v = beta2 v + (1 - beta2) g^2, w = keep w "
        "- "
        "(a g + b m) / (sqrt(v^) + eps)";
    static constexpr const char* operands = "dw, scale, w, m, v";
    auto views() const { return std::tie(dw, scale, w, m, v); }
    DType dtype() const { return w.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(w.numel());
      return flops(n * (decay.flops(scale) + 15)) + reads(dw) + reads_if(n > 0, scale) +
             updates(w, m, v);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(w, [&](int64_t i, int64_t d) {
        T& wi = w.row<T>(i)[d];
        A &mi = m.row<A>(i)[d], &vi = v.row<A>(i)[d];
        const A weight = A(wi), g = decay.gradient<A>(dw.row<T>(i)[d], scale, weight);
        const A first = A(mi) + A(1 - attrs.beta1) * (g - A(mi));
        const A second = A(vi) * A(attrs.beta2) + A(1 - attrs.beta2) * g * g;
        mi = first;
        vi = second;
        const A size = sqrt(second) / A(root_correction) + A(attrs.eps);
        wi = T(decay.weight(weight) - (A(by_gradient) * g + A(by_moment) * first) / size);
      });
    }
  };

  /// Takes the step. Error for shapes or types that differ and for odd numbers.
  static void into(const Tensor& w, const Tensor& m, const Tensor& v, const Tensor& dw,
                   const Tensor& scale, const Attrs& a) {
    check_update(name, w, dw, scale);
    check_kept(name, "the first moment", w, m);
    check_kept(name, "the second moment", w, v);
    check_attrs(a);
    run(w.device(), Call(dw, scale, w, m, v, a));
  }
  static void check_attrs(const Attrs& a) {
    ops::check_attrs(name, a);
    check_share(name, "beta1", a.beta1);
    check_share(name, "beta2", a.beta2);
    check_number(name, "eps", a.eps);
    check_number(name, "momentum_decay", a.momentum_decay);
    check_share(name, "the product of the momenta", a.product);
  }
};

}  // namespace tally::ops
