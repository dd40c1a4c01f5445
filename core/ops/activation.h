#pragma once
#include "core/op.h"
#include "core/ops/activation_functions.h"

namespace tally::ops {

// One scalar function of every element; the functions are in activation_functions.h.
//
//   forward    y[i]  = f(x[i])
//   backward   dx[i] = dy[i] f'(x[i])
//
//   x, y, dx, dy (...), equal shapes    saved: x
struct Activation {
  static constexpr const char* name = "activation";
  struct Attrs {
    ActivationKind function = ActivationKind::silu;
    double parameter = 1;  // beta of swish, alpha of elu
  };
  struct Saved {
    SavedTensor x;
    Attrs attrs;
  };

  struct Forward {
    static constexpr const char* name = "activation.forward";
    static constexpr Kind kind = Kind::elementwise;
    In x;
    Out y;
    Attrs attrs;
    static constexpr const char* formula = "y = act(x)";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(value_flops(attrs.function) * static_cast<double>(x.numel())) + reads(x) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      with_activation(attrs.function, attrs.parameter, [&](auto f) {
        for (int64_t i = 0; i < x.rows(); ++i) {
          for (int64_t d = 0; d < x.cols(); ++d) y.put(y.row<T>(i)[d], f.value(A(x.row<T>(i)[d])));
        }
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "activation.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, x;
    Out dx;
    Attrs attrs;
    static constexpr const char* formula = "dx = dy act'(x)";
    static constexpr const char* operands = "dy, x, dx";
    auto views() const { return std::tie(dy, x, dx); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops((pair_flops(attrs.function) + 1) * static_cast<double>(x.numel())) +
             reads(dy, x) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      with_activation(attrs.function, attrs.parameter, [&](auto f) {
        for (int64_t i = 0; i < x.rows(); ++i) {
          for (int64_t d = 0; d < x.cols(); ++d) {
            dx.put(dx.row<T>(i)[d], A(dy.row<T>(i)[d]) * f.pair(A(x.row<T>(i)[d])).slope);
          }
        }
      });
    }
  };

  static void check_attrs(const char* op, const Attrs& a) {
    check(std::isfinite(a.parameter), op, ": the parameter of ",
          kActivationNames[static_cast<int>(a.function)], " must be finite; got ", a.parameter,
          in_module());
  }
  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    check_attrs(name, a);
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, y, a});
    if (saved) *saved = {x, a};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.x);
    const GradTensor dx = into.at(0, s.x);
    run(dy.device(), Backward{dy, s.x, dx, s.attrs});
    return {dx};
  }
};

}  // namespace tally::ops
