#pragma once
#include <cmath>
#include <cstdint>

#include "core/ops/rounded_once.h"

namespace tally::ops {

using std::abs;
using std::erf;
using std::erfc;
using std::exp;
using std::log;
using std::tanh;

/// The scalar functions that feed-forward layers use, alone (activation.h) or in a gate (gate.h).
/// gelu and gelu_tanh differ by up to 4.7e-4: they are two functions, not two accuracies of one.
enum class ActivationKind : uint8_t {
  identity,
  relu,          ///< max(x, 0), slope 0 at 0
  squared_relu,  ///< max(x, 0)^2. So et al. 2021, arXiv:2109.08668
  gelu,          ///< x P(x), P the normal distribution. Hendrycks & Gimpel 2016, arXiv:1606.08415
  gelu_tanh,     ///< 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). The same, section 2
  silu,          ///< x s(x), s(x) = 1 / (1 + exp(-x)). Elfwing et al. 2017, arXiv:1702.03118
  swish,         ///< x s(p x); p = 1.702: "quick gelu". Ramachandran et al. 2017, arXiv:1710.05941
  sigmoid,       ///< s(x)
  tanh,
  elu,      ///< x for x > 0, else p (exp(x) - 1). Clevert et al. 2015, arXiv:1511.07289
  selu,     ///< elu scaled to keep mean and variance. Klambauer et al. 2017, arXiv:1706.02515
  softplus  ///< log(1 + exp(x))
};
inline constexpr const char* kActivationNames[] = {"identity",  "relu", "squared_relu", "gelu",
                                                   "gelu_tanh", "silu", "swish",        "sigmoid",
                                                   "tanh",      "elu",  "selu",         "softplus"};
inline constexpr int kActivations = 12;

// Each function below has value(x), pair(x) = {value, slope}, and the operations that they count.
// They work for every scalar of the loops, and for a vector of numbers that has these operations,
// `select` and an explicit constructor from double: every branch is computed and one selected, so
// that the count does not depend on x. Arguments are kept where no infinity meets a zero: at
// +-1e20, +-3e38 and infinity, values are x, 0 or their limit, slopes 1 or 0, never NaN.

template <class A>
struct ValueAndSlope {
  A value, slope;
};
template <class A>
A select(bool condition, const A& yes, const A& no) {
  return condition ? yes : no;
}
/// x kept in low..high; a NaN stays.
template <class A>
A clamped(const A& x, double low, double high) {
  const A y = select(x < A(low), A(low), x);
  return select(y > A(high), A(high), y);
}

struct Identity {
  static constexpr double value_flops = 0, pair_flops = 0;
  template <class A>
  A value(const A& x) const {
    return x;
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    return {x, A(1)};
  }
};

struct Relu {
  static constexpr double value_flops = 0, pair_flops = 0;
  template <class A>
  A value(const A& x) const {
    return select(x <= A(0), A(0), x);  // this way round a NaN is seen
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    return {value(x), select(x > A(0), A(1), A(0))};
  }
};

struct SquaredRelu {
  static constexpr double value_flops = 1, pair_flops = 2;
  template <class A>
  A value(const A& x) const {
    const A r = Relu{}.value(x);
    return r * r;
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A r = Relu{}.value(x);
    return {r * r, A(2) * r};
  }
};

// s(z) = m m / d and 1 - s(z) = o o / d with h = exp(-|z| / 2). x m m stays a normal number where
// exp(z) alone would not: silu(-90) = -7.4e-38 in f32.
template <class A>
struct HalfSigmoid {
  static constexpr double flops = 4;
  A m, o, d;
  explicit HalfSigmoid(const A& z) {
    const A h = exp(abs(z) * A(-0.5));
    m = select(z < A(0), h, A(1));
    o = select(z < A(0), A(1), h);
    d = A(1) + h * h;
  }
};

/// x s(z) for a z with the sign of x, or 0: the form of silu, swish and gelu_tanh.
struct TimesSigmoid {
  static constexpr double value_flops = 7, pair_flops = 14;
  template <class A>
  static A bounded(const A& x, const A& z) {  // where s(z) is 0, x must be finite
    return select(z < A(0), clamped(x, -1e30, 1e30), x);
  }
  template <class A>
  static A value(const A& x, const A& z) {
    const HalfSigmoid<A> s(z);
    return bounded(x, z) * s.m * (s.m / s.d);
  }
  /// t = x dz/dx, finite: the slope is s (1 + t (1 - s)).
  template <class A>
  static ValueAndSlope<A> pair(const A& x, const A& z, const A& t) {
    const HalfSigmoid<A> s(z);
    const A inverse = A(1) / s.d, q = s.m * inverse;
    return {bounded(x, z) * s.m * q, (A(1) + t * (s.o * s.o * inverse)) * s.m * q};
  }
};

struct Silu {
  static constexpr double value_flops = TimesSigmoid::value_flops,
                          pair_flops = TimesSigmoid::pair_flops;
  template <class A>
  A value(const A& x) const {
    return TimesSigmoid::value(x, x);
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    return TimesSigmoid::pair(x, x, clamped(x, -1e4, 1e4));
  }
};

struct Swish {
  static constexpr double value_flops = TimesSigmoid::value_flops + 1,
                          pair_flops = TimesSigmoid::pair_flops + 1;
  double beta = 1;
  template <class A>
  A value(const A& x) const {
    return TimesSigmoid::value(x, x * A(beta));
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A z = x * A(beta);
    return TimesSigmoid::pair(x, z, clamped(z, -1e4, 1e4));
  }
};

// 0.5 (1 + tanh u) = s(2u): no 1 + tanh that cancels for negative x. Beyond +-30 it is 0 or 1.
struct GeluTanh {
  static constexpr double value_flops = TimesSigmoid::value_flops + 5,
                          pair_flops = TimesSigmoid::pair_flops + 8;
  static constexpr double two_root = 1.5957691216057308, cubic = 0.044715;  // 2 sqrt(2/pi)
  template <class A>
  A value(const A& x) const {
    const A c = clamped(x, -30, 30);
    return TimesSigmoid::value(x, A(two_root) * c * (A(1) + A(cubic) * (c * c)));
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A c = clamped(x, -30, 30), square = A(cubic) * (c * c), scaled = A(two_root) * c;
    return TimesSigmoid::pair(x, scaled * (A(1) + square), scaled * (A(1) + A(3) * square));
  }
};

// P(x) = erfc(-x / sqrt(2)) / 2: no 1 + erf that cancels for negative x.
struct Gelu {
  static constexpr double value_flops = 4, pair_flops = 10;
  static constexpr double half_root = 0.70710678118654752,
                          density = 0.39894228040143268;  // 1/sqrt(2), 1/sqrt(2 pi)
  template <class A>
  A value(const A& x) const {
    return TimesSigmoid::bounded(x, x) * (A(0.5) * erfc(x * A(-half_root)));
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A below = A(0.5) * erfc(x * A(-half_root)), c = clamped(x, -1e4, 1e4);
    return {TimesSigmoid::bounded(x, x) * below, below + c * (A(density) * exp(c * c * A(-0.5)))};
  }
};

struct Sigmoid {
  static constexpr double value_flops = 3, pair_flops = 5;
  template <class A>
  A value(const A& x) const {
    const A e = exp(-abs(x));
    return select(x < A(0), e, A(1)) / (A(1) + e);
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A e = exp(-abs(x)), d = A(1) + e;
    return {select(x < A(0), e, A(1)) / d, e / (d * d)};
  }
};

// The slope is 1 - tanh^2 x = 4 e / (1 + e)^2, e = exp(-2 |x|), which does not cancel.
struct Tanh {
  static constexpr double value_flops = 1, pair_flops = 7;
  template <class A>
  A value(const A& x) const {
    return tanh(x);
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A e = exp(A(-2) * abs(x)), d = A(1) + e;
    return {tanh(x), A(4) * e / (d * d)};
  }
};

// exp(n) - 1 = 2 t / (1 - t) with t = tanh(n / 2): keeps its digits near 0.
struct Elu {
  static constexpr double value_flops = 6, pair_flops = 8;
  double alpha = 1, scale = 1;
  template <class A>
  A value(const A& x) const {
    const A t = tanh(A(0.5) * select(x > A(0), A(0), x));
    return select(x > A(0), A(scale) * x, A(2 * alpha * scale) * t / (A(1) - t));
  }
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A slope = A(alpha * scale) * exp(select(x > A(0), A(0), x));
    return {value(x), select(x > A(0), A(scale), slope)};
  }
};

// max(x, 0) + log(1 + e), e = exp(-|x|). With u = 1 + e rounded, log(u) e / (u - 1) is log(1 + e)
// to full precision (Kahan): plain log(1 + e) is 0 below 1e-8 in f32.
struct Softplus {
  static constexpr double value_flops = 7, pair_flops = 8;
  template <class A>
  ValueAndSlope<A> pair(const A& x) const {
    const A e = exp(-abs(x)), u = A(1) + e;
    return {value_from(x, e, u), select(x < A(0), e, A(1)) / u};
  }
  template <class A>
  A value(const A& x) const {
    const A e = exp(-abs(x));
    return value_from(x, e, A(1) + e);
  }
  template <class A>
  static A value_from(const A& x, const A& e, const A& u) {
    const A d = u - A(1);
    const A small = log(u) * e / select(d > A(0), d, A(1));
    return select(x < A(0), A(0), x) + select(d > A(0), small, e);
  }
};

/// Calls f with the function that `kind` names; `p` is its parameter where it has one.
template <class F>
auto with_activation(ActivationKind kind, double p, F&& f) {
  switch (kind) {
    case ActivationKind::identity:
      return f(Identity{});
    case ActivationKind::relu:
      return f(Relu{});
    case ActivationKind::squared_relu:
      return f(SquaredRelu{});
    case ActivationKind::gelu:
      return f(RoundedOnce<Gelu>{});
    case ActivationKind::gelu_tanh:
      return f(RoundedOnce<GeluTanh>{});
    case ActivationKind::silu:
      return f(RoundedOnce<Silu>{});
    case ActivationKind::swish:
      return f(RoundedOnce<Swish>{{p}});
    case ActivationKind::sigmoid:
      return f(RoundedOnce<Sigmoid>{});
    case ActivationKind::tanh:
      return f(RoundedOnce<Tanh>{});
    case ActivationKind::elu:
      return f(Elu{p, 1});
    case ActivationKind::selu:
      return f(Elu{1.6732632423543772, 1.0507009873554805});
    case ActivationKind::softplus:
      break;
  }
  return f(Softplus{});
}
inline double value_flops(ActivationKind kind) {
  return with_activation(kind, 1, [](auto f) { return f.value_flops; });
}
inline double pair_flops(ActivationKind kind) {
  return with_activation(kind, 1, [](auto f) { return f.pair_flops; });
}

}  // namespace tally::ops
