#pragma once
#include "core/ops/layout.h"

namespace tally::ops {

/// Scalars of an operation on one tensor; what they mean is the rule's.
struct UnaryAttrs {
  double p = 0, q = 0;
};
/// What the gradient of an operation on one tensor reads beside dy.
enum class Keeps : uint8_t { nothing, input, output };

// The frame of the operations on one tensor. `Rule` says what happens to an element.
//
//   forward    y[i] = value(x[i])
//   backward   dx[i] = slope(dy[i], x[i] or y[i])
//
//   x, y, dx, dy (...), any strides    saved: x or y, whichever the slope needs
//
// A rule has names, keeps, forward_flops and backward_flops an element, value(x, attrs) and
// slope(dy, kept, attrs), where `kept` is a callable, so that only what is used is read.
template <class Rule>
struct Unary {
  static constexpr const char* name = Rule::names[0];
  using Attrs = UnaryAttrs;
  struct Saved {
    SavedTensor kept;
    Like y;
    Attrs attrs;
  };

  struct Forward {
    static constexpr const char* name = Rule::names[1];
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In x;
    Out y;
    UnaryAttrs attrs;
    static constexpr const char* formula = Rule::formulas[0];
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(Rule::forward_flops * static_cast<double>(y.numel())) + reads(x) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      walk(y.shape, std::array{x.strides, y.strides}, [&](const auto& at) {
        y.put(y.pointer<T>()[at[1]], Rule::value(A(x.pointer<T>()[at[0]]), attrs));
      });
    }
  };

  struct Backward {
    static constexpr const char* name = Rule::names[2];
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In dy, kept;
    Out dx;
    UnaryAttrs attrs;
    static constexpr const char* formula = Rule::formulas[1];
    static constexpr const char* operands = "dy, kept, dx";
    auto views() const { return std::tie(dy, kept, dx); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      return flops(Rule::backward_flops * static_cast<double>(dy.numel())) + reads(dy, kept) +
             writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const Shape& strides = kept.defined() ? kept.strides : dy.strides;
      walk(dy.shape, std::array{dy.strides, strides, dx.strides}, [&](const auto& at) {
        const auto k = [&] { return A(kept.pointer<T>()[at[1]]); };
        dx.put(dx.pointer<T>()[at[2]], Rule::slope(A(dy.pointer<T>()[at[0]]), k, attrs));
      });
    }
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    if constexpr (requires { Rule::check_attrs(a); }) Rule::check_attrs(a);
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, y, a});
    if (!saved) return y;
    saved->attrs = a;
    saved->y = y;
    if (Rule::keeps == Keeps::input) saved->kept = x;
    if (Rule::keeps == Keeps::output) saved->kept = y;
    return y;
  }

  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    if constexpr (requires { Rule::slope_is_dy; }) {
      return {hand_on(dy, into, 0)};
    } else {
      const GradTensor dx = gradient_of_shape(into, 0, dy.shape(), dy);
      if (dx.wanted()) run(dy.device(), Backward{dy, s.kept, dx, s.attrs});
      return {dx};
    }
  }
};

}  // namespace tally::ops
