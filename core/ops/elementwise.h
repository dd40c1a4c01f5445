#pragma once
#include "core/ops/reductions.h"

namespace tally::ops {

/// How the gradient of one operand follows from dy: operations an element, and which operands it
/// reads. `is_dy`: it is dy itself, so nothing is computed.
struct Slope {
  double flops = 0;
  bool reads_a = false, reads_b = false, is_dy = false;
};

// The frame of the operations of two tensors, which broadcast by NumPy's rule. `Rule` says what
// happens to one pair of elements.
//
//   forward    y[i] = value(a[i], b[i])
//   backward   da[j] = sum over the i that a[j] is repeated to of slope_a(dy[i], a[j], b[i])
//              db alike
//
//   a, b, da, db: shapes that broadcast to that of y and dy; any strides    saved: what the slopes
//   read
//
// A rule has names, flops, to_a, to_b, value(a, b) and, unless both are dy, slope_a(dy, a, b) and
// slope_b(dy, a, b), where a and b are callables, so that only what is used is read.
template <class Rule>
struct Binary {
  static constexpr const char* name = Rule::names[0];
  static constexpr Slope to_a = Rule::to_a, to_b = Rule::to_b;
  struct Attrs {};
  struct Saved {
    SavedTensor a, b;
    Shape a_shape, b_shape;
    Like y;
  };

  struct Forward {
    static constexpr const char* name = Rule::names[1];
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In a, b;
    Out y;
    static constexpr const char* formula = Rule::formulas[0];
    static constexpr const char* operands = "a, b, y";
    auto views() const { return std::tie(a, b, y); }
    DType dtype() const { return y.dtype; }
    Cost cost() const {
      return flops(Rule::flops * static_cast<double>(y.numel())) + reads_if(y.numel() > 0, a, b) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const Shape& s = y.shape;
      const std::array strides{y.strides, broadcast_strides(a, s), broadcast_strides(b, s)};
      walk(s, strides, [&](const auto& at) {
        const A value = Rule::value(A(a.pointer<T>()[at[1]]), A(b.pointer<T>()[at[2]]));
        y.put(y.pointer<T>()[at[0]], value);
      });
    }
  };

  struct Backward {
    static constexpr const char* name = Rule::names[2];
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In dy, a, b;
    Out da, db;
    static constexpr const char* formula = Rule::formulas[1];
    static constexpr const char* operands = "dy, a, b, da, db";
    auto views() const { return std::tie(dy, a, b, da, db); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(dy.numel());
      Cost c = writes(da, db);
      if (da.defined()) c += flops(to_a.flops * n + repetition_flops(da, dy.shape));
      if (db.defined()) c += flops(to_b.flops * n + repetition_flops(db, dy.shape));
      const bool reads_a = (da.defined() && to_a.reads_a) || (db.defined() && to_b.reads_a);
      const bool reads_b = (da.defined() && to_a.reads_b) || (db.defined() && to_b.reads_b);
      return c + reads(dy) + reads_if(n > 0 && reads_a, a) + reads_if(n > 0 && reads_b, b);
    }
    template <class T>
    void reference() const {
      const Shape& s = dy.shape;
      const Shape none = Shape(s);
      const std::array strides{dy.strides, a.defined() ? broadcast_strides(a, s) : none,
                               b.defined() ? broadcast_strides(b, s) : none};
      using A = acc_t<T>;
      const auto sum = [&](const Out& d, auto&& slope) {
        if (!d.defined()) return;
        sum_repetitions<T>(d, s, strides, [&](const auto& at) {
          return slope(
              A(dy.pointer<T>()[at[0]]), [&] { return A(a.pointer<T>()[at[1]]); },
              [&] { return A(b.pointer<T>()[at[2]]); });
        });
      };
      sum(da, [](const A& g, auto&& x, auto&& z) { return Rule::slope_a(g, x, z); });
      sum(db, [](const A& g, auto&& x, auto&& z) { return Rule::slope_b(g, x, z); });
    }
  };

  static Tensor forward(const Tensor& a, const Tensor& b, const Attrs&, Saved* saved) {
    check_defined(name, "a", a);
    check_defined(name, "b", b);
    check_same_dtype(name, a, b);
    Tensor y = empty(broadcast_shapes(name, a.shape(), b.shape()), a.dtype(), a.device());
    run(a.device(), Forward{a, b, y});
    if (saved) {
      saved->a_shape = a.shape();
      saved->b_shape = b.shape();
      saved->y = y;
      if (to_a.reads_a || to_b.reads_a) saved->a = a;
      if (to_a.reads_b || to_b.reads_b) saved->b = b;
    }
    return y;
  }

  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.y);
    std::array<Tensor, 2> dx;
    if constexpr (to_a.is_dy) dx[0] = sum_to_shape(dy, s.a_shape, into, 0);
    if constexpr (to_b.is_dy) dx[1] = sum_to_shape(dy, s.b_shape, into, 1);
    if constexpr (!to_a.is_dy || !to_b.is_dy) {
      GradTensor da, db;
      if (!to_a.is_dy) da = gradient_of_shape(into, 0, s.a_shape, dy);
      if (!to_b.is_dy) db = gradient_of_shape(into, 1, s.b_shape, dy);
      if (da.wanted() || db.wanted()) run(dy.device(), Backward{dy, s.a, s.b, da, db});
      if (da.wanted()) dx[0] = da;
      if (db.wanted()) dx[1] = db;
    }
    return dx;
  }
};

// y = a + b,    da = dy, db = dy: the gradient is handed on, not copied.
struct AddRule {
  static constexpr const char* formulas[2] = {"y = a + b", "da = dy, db = dy"};
  static constexpr const char* names[] = {"add", "add.forward", "add.backward"};
  static constexpr double flops = 1;
  static constexpr Slope to_a{.is_dy = true}, to_b{.is_dy = true};
  template <class A>
  static A value(const A& a, const A& b) {
    return a + b;
  }
};

// y = a - b,    da = dy, db = -dy
struct SubRule {
  static constexpr const char* formulas[2] = {"y = a - b", "da = dy, db = -dy"};
  static constexpr const char* names[] = {"sub", "sub.forward", "sub.backward"};
  static constexpr double flops = 1;
  static constexpr Slope to_a{.is_dy = true}, to_b{};
  template <class A>
  static A value(const A& a, const A& b) {
    return a - b;
  }
  static auto slope_a(const auto& dy, auto&&, auto&&) { return dy; }
  static auto slope_b(const auto& dy, auto&&, auto&&) { return -dy; }
};

// y = a b,    da = dy b, db = dy a
struct MulRule {
  static constexpr const char* formulas[2] = {"y = a b", "da = dy b, db = dy a"};
  static constexpr const char* names[] = {"mul", "mul.forward", "mul.backward"};
  static constexpr double flops = 1;
  static constexpr Slope to_a{.flops = 1, .reads_b = true}, to_b{.flops = 1, .reads_a = true};
  template <class A>
  static A value(const A& a, const A& b) {
    return a * b;
  }
  static auto slope_a(const auto& dy, auto&&, auto&& b) { return dy * b(); }
  static auto slope_b(const auto& dy, auto&& a, auto&&) { return dy * a(); }
};

// y = a / b,    da = dy / b, db = -dy (a / b) / b: b^2 could overflow
struct DivRule {
  static constexpr const char* formulas[2] = {"y = a / b", "da = dy / b, db = -dy a / b^2"};
  static constexpr const char* names[] = {"div", "div.forward", "div.backward"};
  static constexpr double flops = 1;
  static constexpr Slope to_a{.flops = 1, .reads_b = true};
  static constexpr Slope to_b{.flops = 3, .reads_a = true, .reads_b = true};
  template <class A>
  static A value(const A& a, const A& b) {
    return a / b;
  }
  static auto slope_a(const auto& dy, auto&&, auto&& b) { return dy / b(); }
  template <class A>
  static A slope_b(const A& dy, auto&& a, auto&& b) {
    const A divisor = b();
    return -(dy * (a() / divisor) / divisor);
  }
};

// y = max(a, b) or min(a, b),    the gradient goes to the one that is chosen, half to each where
// they are equal. A NaN in either is chosen.
template <bool kLargest>
struct ChooseRule {
  static constexpr const char* formulas[2] = {"y = the chosen of a and b",
                                              "da, db = dy to the chosen, half to each of equals"};
  static constexpr const char* names[3] = {kLargest ? "maximum" : "minimum",
                                           kLargest ? "maximum.forward" : "minimum.forward",
                                           kLargest ? "maximum.backward" : "minimum.backward"};
  static constexpr double flops = 0;
  static constexpr Slope to_a{.flops = 1, .reads_a = true, .reads_b = true}, to_b = to_a;
  template <class A>
  static A value(const A& a, const A& b) {
    const bool first = kLargest ? a > b : a < b;
    return first || is_nan(a) ? a : b;
  }
  template <class A>
  static A slope_a(const A& dy, auto&& a, auto&& b) {
    return share(dy, a(), b());
  }
  template <class A>
  static A slope_b(const A& dy, auto&& a, auto&& b) {
    return share(dy, b(), a());
  }

 private:
  template <class A>
  static A share(const A& dy, const A& mine, const A& other) {
    A half = dy * A(0.5);  // on both branches, so that the count does not depend on values
    if (mine == other) return half;
    const bool chosen = kLargest ? mine > other : mine < other;
    return chosen || is_nan(mine) ? dy : A(0);
  }
};

using Add = Binary<AddRule>;
using Sub = Binary<SubRule>;
using Mul = Binary<MulRule>;
using Div = Binary<DivRule>;
using Maximum = Binary<ChooseRule<true>>;
using Minimum = Binary<ChooseRule<false>>;

}  // namespace tally::ops
