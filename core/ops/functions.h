#pragma once
#include "core/ops/unary.h"

namespace tally::ops {

// The functions of one tensor: value and slope of an element. The frame is unary.h.

// y = p x,    dx = p dy
struct ScaleRule {
  static constexpr const char* formulas[2] = {"y = p x", "dx = p dy"};
  static constexpr const char* names[] = {"scale", "scale.forward", "scale.backward"};
  static constexpr Keeps keeps = Keeps::nothing;
  static constexpr double forward_flops = 1, backward_flops = 1;
  template <class A>
  static A value(const A& x, const UnaryAttrs& a) {
    return x * A(a.p);
  }
  template <class A>
  static A slope(const A& dy, auto&&, const UnaryAttrs& a) {
    return dy * A(a.p);
  }
};

// y = x + p,    dx = dy: handed on, not copied
struct AddScalarRule {
  static constexpr const char* formulas[2] = {"y = x + p", "dx = dy"};
  static constexpr const char* names[] = {"add_scalar", "add_scalar.forward",
                                          "add_scalar.backward"};
  static constexpr Keeps keeps = Keeps::nothing;
  static constexpr double forward_flops = 1, backward_flops = 0;
  static constexpr bool slope_is_dy = true;
  template <class A>
  static A value(const A& x, const UnaryAttrs& a) {
    return x + A(a.p);
  }
  template <class A>
  static A slope(const A& dy, auto&&, const UnaryAttrs&) {
    return dy;
  }
};

// y = -x,    dx = -dy
struct NegRule {
  static constexpr const char* formulas[2] = {"y = -x", "dx = -dy"};
  static constexpr const char* names[] = {"neg", "neg.forward", "neg.backward"};
  static constexpr Keeps keeps = Keeps::nothing;
  static constexpr double forward_flops = 0, backward_flops = 0;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return -x;
  }
  template <class A>
  static A slope(const A& dy, auto&&, const UnaryAttrs&) {
    return -dy;
  }
};

// y = |x|,    dx = dy sign(x), 0 at 0
struct AbsRule {
  static constexpr const char* formulas[2] = {"y = |x|", "dx = dy sign(x)"};
  static constexpr const char* names[] = {"abs", "abs.forward", "abs.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 0, backward_flops = 0;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return abs(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs&) {
    const A v = x();
    return v > A(0) ? dy : v < A(0) ? -dy : A(0);
  }
};

// y = e^x,    dx = dy y
struct ExpRule {
  static constexpr const char* formulas[2] = {"y = exp(x)", "dx = dy y"};
  static constexpr const char* names[] = {"exp", "exp.forward", "exp.backward"};
  static constexpr Keeps keeps = Keeps::output;
  static constexpr double forward_flops = 1, backward_flops = 1;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return exp(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& y, const UnaryAttrs&) {
    return dy * y();
  }
};

// y = ln x,    dx = dy / x
struct LogRule {
  static constexpr const char* formulas[2] = {"y = log(x)", "dx = dy / x"};
  static constexpr const char* names[] = {"log", "log.forward", "log.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 1, backward_flops = 1;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return log(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs&) {
    return dy / x();
  }
};

// y = sqrt(x),    dx = dy / (2 y)
struct SqrtRule {
  static constexpr const char* formulas[2] = {"y = sqrt(x)", "dx = dy / (2 y)"};
  static constexpr const char* names[] = {"sqrt", "sqrt.forward", "sqrt.backward"};
  static constexpr Keeps keeps = Keeps::output;
  static constexpr double forward_flops = 1, backward_flops = 2;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return sqrt(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& y, const UnaryAttrs&) {
    return dy * A(0.5) / y();
  }
};

// y = 1 / sqrt(x),    dx = -dy y^3 / 2
struct RsqrtRule {
  static constexpr const char* formulas[2] = {"y = 1 / sqrt(x)", "dx = -dy y^3 / 2"};
  static constexpr const char* names[] = {"rsqrt", "rsqrt.forward", "rsqrt.backward"};
  static constexpr Keeps keeps = Keeps::output;
  static constexpr double forward_flops = 2, backward_flops = 4;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return A(1) / sqrt(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& y, const UnaryAttrs&) {
    const A v = y();
    return dy * A(-0.5) * v * v * v;
  }
};

// y = 1 / x,    dx = -dy y^2
struct ReciprocalRule {
  static constexpr const char* formulas[2] = {"y = 1 / x", "dx = -dy y^2"};
  static constexpr const char* names[] = {"reciprocal", "reciprocal.forward",
                                          "reciprocal.backward"};
  static constexpr Keeps keeps = Keeps::output;
  static constexpr double forward_flops = 1, backward_flops = 2;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return A(1) / x;
  }
  template <class A>
  static A slope(const A& dy, auto&& y, const UnaryAttrs&) {
    const A v = y();
    return -(dy * v * v);
  }
};

// y = x^2,    dx = 2 dy x
struct SquareRule {
  static constexpr const char* formulas[2] = {"y = x^2", "dx = 2 dy x"};
  static constexpr const char* names[] = {"square", "square.forward", "square.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 1, backward_flops = 2;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return x * x;
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs&) {
    return A(2) * dy * x();
  }
};

// y = x^p,    dx = dy p x^(p-1), 0 for p = 0
struct PowRule {
  static constexpr const char* formulas[2] = {"y = x^p", "dx = dy p x^(p - 1)"};
  static constexpr const char* names[] = {"pow", "pow.forward", "pow.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 1, backward_flops = 3;
  template <class A>
  static A power(const A& x, double p) {
    if constexpr (std::is_floating_point_v<A>)
      return std::pow(x, static_cast<A>(p));
    else
      return pow(x, p);
  }
  template <class A>
  static A value(const A& x, const UnaryAttrs& a) {
    return power(x, a.p);
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs& a) {
    return dy * A(a.p) * power(x(), a.p == 0 ? 0 : a.p - 1);  // 0 x^-1 would be NaN at 0
  }
};

// y = sin x,    dx = dy cos x
struct SinRule {
  static constexpr const char* formulas[2] = {"y = sin(x)", "dx = dy cos(x)"};
  static constexpr const char* names[] = {"sin", "sin.forward", "sin.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 1, backward_flops = 2;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return sin(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs&) {
    return dy * cos(x());
  }
};

// y = cos x,    dx = -dy sin x
struct CosRule {
  static constexpr const char* formulas[2] = {"y = cos(x)", "dx = -dy sin(x)"};
  static constexpr const char* names[] = {"cos", "cos.forward", "cos.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 1, backward_flops = 2;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return cos(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs&) {
    return -(dy * sin(x()));
  }
};

// y = erf x = 2 / sqrt(pi) int_0^x e^(-t^2) dt,    dx = dy 2 / sqrt(pi) e^(-x^2)
struct ErfRule {
  static constexpr const char* formulas[2] = {"y = erf(x)", "dx = dy 2 / sqrt(pi) exp(-x^2)"};
  static constexpr const char* names[] = {"erf", "erf.forward", "erf.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 1, backward_flops = 4;
  template <class A>
  static A value(const A& x, const UnaryAttrs&) {
    return erf(x);
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs&) {
    const A v = x();
    return dy * A(1.12837916709551257390) * exp(-(v * v));
  }
};

// y = x, but p where x < p and q where x > q,    dx = dy where p <= x <= q, else 0
struct ClampRule {
  static constexpr const char* formulas[2] = {"y = min(max(x, p), q)",
                                              "dx = dy where p <= x <= q, else 0"};
  static constexpr const char* names[] = {"clamp", "clamp.forward", "clamp.backward"};
  static constexpr Keeps keeps = Keeps::input;
  static constexpr double forward_flops = 0, backward_flops = 0;
  static void check_attrs(const UnaryAttrs& a) {
    check(a.p <= a.q, "clamp: low must not be above high; got ", a.p, " and ", a.q, in_module());
  }
  template <class A>
  static A value(const A& x, const UnaryAttrs& a) {
    return x < A(a.p) ? A(a.p) : x > A(a.q) ? A(a.q) : x;
  }
  template <class A>
  static A slope(const A& dy, auto&& x, const UnaryAttrs& a) {
    const A v = x();
    return v >= A(a.p) && v <= A(a.q) ? dy : A(0);
  }
};

using Scale = Unary<ScaleRule>;
using AddScalar = Unary<AddScalarRule>;
using Neg = Unary<NegRule>;
using Abs = Unary<AbsRule>;
using Exp = Unary<ExpRule>;
using Log = Unary<LogRule>;
using Sqrt = Unary<SqrtRule>;
using Rsqrt = Unary<RsqrtRule>;
using Reciprocal = Unary<ReciprocalRule>;
using Square = Unary<SquareRule>;
using Pow = Unary<PowRule>;
using Sin = Unary<SinRule>;
using Cos = Unary<CosRule>;
using Erf = Unary<ErfRule>;
using Clamp = Unary<ClampRule>;

}  // namespace tally::ops
