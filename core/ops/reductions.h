#pragma once
#include "core/ops/reduce.h"

namespace tally::ops {

// The reductions: each is what it does with the n elements of a group. The frame is reduce.h.

// y = sum_i x_i,    dx_i = dy. Of nothing: 0.
struct SumRule {
  static constexpr const char* formulas[2] = {"y = sum(x)", "dx = dy"};
  static constexpr const char* names[] = {"sum", "sum.forward", "sum.backward"};
  static constexpr bool needs_x = false, needs_y = false, refuses_empty = false;
  static double forward_flops(double, double n, double) { return n; }
  static double backward_flops(double, double, double) { return 0; }
  template <class A>
  static A value(int64_t, double, auto&& each) {
    A sum(0);
    each([&](const A& x) { sum += x; });
    return sum;
  }
  template <class A>
  static auto slope(const A& dy, auto&&, int64_t, double, auto&&) {
    return [dy](auto&&) { return dy; };
  }
};

// y = (1/n) sum_i x_i,    dx_i = dy / n. Of nothing: NaN, as 0 / 0 is.
struct MeanRule {
  static constexpr const char* formulas[2] = {"y = mean(x)", "dx = dy / n"};
  static constexpr const char* names[] = {"mean", "mean.forward", "mean.backward"};
  static constexpr bool needs_x = false, needs_y = false, refuses_empty = false;
  static double forward_flops(double m, double n, double) { return n + m; }
  static double backward_flops(double m, double, double) { return m; }
  template <class A>
  static A value(int64_t count, double c, auto&& each) {
    return SumRule::value<A>(count, c, each) / A(count);
  }
  template <class A>
  static auto slope(const A& dy, auto&&, int64_t count, double, auto&&) {
    return [share = dy / A(count)](auto&&) { return share; };
  }
};

// y = max_i x_i,    dx_i = dy / (number of maxima) where x_i = y, else 0. A NaN wins. Of nothing:
// an error. `amin` is the same with the order turned round.
template <bool kLargest>
struct ExtremeRule {
  static constexpr const char* formulas[2] = {"y = the extreme of x",
                                              "dx = dy at the extreme, shared by equals"};
  static constexpr const char* names[3] = {kLargest ? "amax" : "amin",
                                           kLargest ? "amax.forward" : "amin.forward",
                                           kLargest ? "amax.backward" : "amin.backward"};
  static constexpr bool needs_x = true, needs_y = true, refuses_empty = true;
  static double forward_flops(double, double, double) { return 0; }
  static double backward_flops(double m, double, double) { return m; }
  template <class A>
  static A value(int64_t, double, auto&& each) {
    A best(kLargest ? -INFINITY : INFINITY);
    each([&](const A& x) {
      if (is_nan(x) || (kLargest ? x > best : x < best)) best = x;
    });
    return best;
  }
  template <class A>
  static auto slope(const A& dy, auto&& output, int64_t, double, auto&& each) {
    const A y = output();
    int64_t ties = 0;
    each([&](const A& x) { ties += x == y ? 1 : 0; });
    return [y, share = dy / A(ties ? ties : 1)](auto&& x) { return x() == y ? share : A(0); };
  }
};

// y = sqrt(sum_i x_i^2),    dx_i = dy x_i / y, and 0 where y = 0.
struct NormRule {
  static constexpr const char* formulas[2] = {"y = sqrt(sum(x^2))", "dx = dy x / y"};
  static constexpr const char* names[] = {"norm", "norm.forward", "norm.backward"};
  static constexpr bool needs_x = true, needs_y = true, refuses_empty = false;
  static double forward_flops(double m, double n, double) { return 2 * n + m; }
  static double backward_flops(double m, double n, double) { return n + m; }
  template <class A>
  static A value(int64_t, double, auto&& each) {
    A sum(0);
    each([&](const A& x) { sum += x * x; });
    return sqrt(sum);
  }
  template <class A>
  static auto slope(const A& dy, auto&& output, int64_t, double, auto&&) {
    const A y = output();
    return [scale = dy / (y == A(0) ? A(1) : y)](auto&& x) { return x() * scale; };
  }
};

// y = log sum_i exp(x_i) = m + log sum_i exp(x_i - m), m the largest,    dx_i = dy exp(x_i - y).
// Of nothing, or of nothing but -inf: -inf, with gradients of 0.
struct LogSumExpRule {
  static constexpr const char* formulas[2] = {"y = log sum exp(x)", "dx = dy exp(x - y)"};
  static constexpr const char* names[] = {"logsumexp", "logsumexp.forward", "logsumexp.backward"};
  static constexpr bool needs_x = true, needs_y = true, refuses_empty = false;
  static double forward_flops(double m, double n, double) { return 3 * n + 2 * m; }
  static double backward_flops(double, double n, double) { return 3 * n; }
  template <class A>
  static A value(int64_t, double, auto&& each) {
    A largest(-INFINITY);
    each([&](const A& x) { largest = larger(largest, x); });
    const A shift = finite_or_zero(largest);  // inf - inf would be NaN
    A sum(0);
    each([&](const A& x) { sum += exp(x - shift); });
    return log(sum) + shift;
  }
  template <class A>
  static auto slope(const A& dy, auto&& output, int64_t, double, auto&&) {
    const A y = output();
    const A shift = y < A(0) ? finite_or_zero(y) : y;
    return [dy, shift](auto&& x) { return dy * exp(x() - shift); };
  }
  template <class A>
  static A finite_or_zero(const A& x) {
    using std::isfinite;
    return isfinite(x) ? x : A(0);
  }
};

// y = sum_i (x_i - mean)^2 / (n - c),    dx_i = dy 2 (x_i - mean) / (n - c), c = 0 (biased) or 1.
// Two passes: the mean first, so that a large mean does not cancel the digits away. NaN where
// n <= c.
struct VarRule {
  static constexpr const char* formulas[2] = {"y = sum((x - mean(x))^2) / (n - c)",
                                              "dx = 2 dy (x - mean(x)) / (n - c)"};
  static constexpr const char* names[] = {"var", "var.forward", "var.backward"};
  static constexpr bool needs_x = true, needs_y = false, refuses_empty = false;
  static double forward_flops(double m, double n, double) { return 4 * n + 2 * m; }
  static double backward_flops(double m, double n, double) { return 3 * n + 3 * m; }
  template <class A>
  static A value(int64_t count, double c, auto&& each) {
    const A mean = MeanRule::value<A>(count, c, each);
    A sum(0);
    each([&](const A& x) {
      const A d = x - mean;
      sum += d * d;
    });
    return sum / degrees<A>(count, c);
  }
  template <class A>
  static auto slope(const A& dy, auto&&, int64_t count, double c, auto&& each) {
    const A mean = MeanRule::value<A>(count, c, each);
    return
        [mean, scale = dy * A(2) / degrees<A>(count, c)](auto&& x) { return (x() - mean) * scale; };
  }
  template <class A>
  static A degrees(int64_t count, double c) {
    const double n = static_cast<double>(count) - c;
    return A(n > 0 ? n : NAN);
  }
};

using Sum = Reduce<SumRule>;
using Mean = Reduce<MeanRule>;
using AMax = Reduce<ExtremeRule<true>>;
using AMin = Reduce<ExtremeRule<false>>;
using Norm = Reduce<NormRule>;
using LogSumExp = Reduce<LogSumExpRule>;
using Var = Reduce<VarRule>;

/// The sum of a gradient over the axes along which an operand of this shape was repeated.
template <int N>
Tensor sum_to_shape(const Tensor& dy, const Shape& shape, const Into<N>& into, int i) {
  if (shape == dy.shape()) return hand_on(dy, into, i);
  check(broadcast_shapes("backward", shape, dy.shape()) == dy.shape(),
        "backward: the gradient of the output must have the output's shape, to which ", shape,
        " broadcasts; got ", dy.shape(), in_module());
  const GradTensor dx = gradient_of_shape(into, i, shape, dy);
  if (dx.wanted()) run(dy.device(), Sum::Forward{dy, dx});
  return dx;
}

}  // namespace tally::ops
