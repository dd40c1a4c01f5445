#pragma once
#include "core/op.h"
#include "core/ops/activation_functions.h"

namespace tally::ops {

// xIELU, the activation of Apertus. Huang & Schlag 2024, arXiv:2411.13010, with both curvatures
// learned.
//
//   forward    y  = p x^2 + b x                              x > 0
//              y  = n (exp(c) - 1) + (b - n) x,  c = min(x, eps)   x <= 0
//   backward   dx = dy (2 p x + b)                           x > 0
//              dx = dy (n exp(c) [x < eps] + b - n)          x <= 0
//              dp = sum dy x^2 over x > 0,   dn = sum dy (exp(c) - 1 - x) over x <= 0
//
//   x, y, dx, dy (...)    p, n, dp, dn (): one number each    saved: x, p, n
//   b: a constant, the slope at 0    eps <= 0, -1e-6: it keeps exp(c) - 1 away from 0 in bf16
//
// exp(c) - 1 is 2 t / (1 - t) with t = tanh(c / 2): it keeps its digits near 0. p and n are the
// values that enter, softplus of what is stored (and b added to n) in the published models.
struct Xielu {
  static constexpr const char* name = "xielu";
  struct Attrs {
    double b = 0.5, eps = -1e-6;
  };
  struct Saved {
    SavedTensor x, p, n;
    Attrs attrs;
  };

  /// x where it is above 0, else 0; and exp(min(x, eps)) - 1.
  template <class A>
  static A positive(const A& x) {
    return select(x > A(0), x, A(0));
  }
  template <class A>
  static A bounded(const A& x, double eps) {
    return select(x > A(eps), A(eps), x);
  }
  static constexpr double kExpm1Flops = 5;
  template <class A>
  static A expm1_of(const A& c) {
    const A t = tanh(A(0.5) * c);
    return A(2) * t / (A(1) - t);
  }

  struct Forward {
    static constexpr const char* name = "xielu.forward";
    static constexpr Kind kind = Kind::elementwise;
    In x, p, n;
    Out y;
    Attrs a;
    static constexpr const char* formula =
        "y = p x^2 + b x for x > 0, n (exp(min(x, eps)) - 1) + (b - n) x else";
    static constexpr const char* operands = "x, p, n, y";
    auto views() const { return std::tie(x, p, n, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double count = static_cast<double>(x.numel());
      return flops((kExpm1Flops + 7) * count) + reads(x) + reads_if(count > 0, p, n) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A v(x.row<T>(i)[d]), pv(p.at<T>(0)), nv(n.at<T>(0)), up = positive(v);
          const A above = up * (pv * up + A(a.b));
          const A below = nv * expm1_of(bounded(v, a.eps)) + (A(a.b) - nv) * v;
          y.put(y.row<T>(i)[d], select(v > A(0), above, below));
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "xielu.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, x, p, n;
    Out dx, dp, dn;
    Attrs a;
    static constexpr const char* formula =
        "dx = dy (2 p x + b) or dy (n exp(c) + b - n), dp = sum(dy x^2), dn = sum(dy (exp(c) - 1 - "
        "x))";
    static constexpr const char* operands = "dy, x, p, n, dx, dp, dn";
    auto views() const { return std::tie(dy, x, p, n, dx, dp, dn); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      const double count = static_cast<double>(x.numel());
      const double each =
          (dx.defined() ? 8 : 0) + (dp.defined() ? 3 : 0) + (dn.defined() ? kExpm1Flops + 3 : 0);
      const bool any = dx.defined() || dp.defined() || dn.defined();
      return flops(each * count) + reads_if(any, dy, x) +
             reads_if(dx.defined() && count > 0, p, n) + writes(dx, dp, dn);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      A sum_p(0), sum_n(0);
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A g(dy.row<T>(i)[d]), v(x.row<T>(i)[d]), up = positive(v);
          if (dx.defined()) dx.put(dx.row<T>(i)[d], g * slope(v, A(p.at<T>(0)), A(n.at<T>(0))));
          if (dp.defined()) sum_p += g * (up * up);
          if (dn.defined()) {
            const A part = expm1_of(bounded(v, a.eps)) - v;
            sum_n += g * select(v > A(0), A(0), part);
          }
        }
      }
      if (dp.defined()) dp.put(dp.at<T>(0), sum_p);
      if (dn.defined()) dn.put(dn.at<T>(0), sum_n);
    }
    template <class A>
    A slope(const A& v, const A& pv, const A& nv) const {
      const A curve = nv * exp(bounded(v, a.eps));
      const A above = A(2) * pv * positive(v) + A(a.b), below = A(a.b) - nv;
      return select(v > A(0), above, select(v < A(a.eps), curve, A(0)) + below);
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& p, const Tensor& n, const Attrs& a,
                        Saved* saved) {
    check_defined(name, "x", x);
    check_defined(name, "alpha_p", p);
    check_defined(name, "alpha_n", n);
    check_same_dtype(name, x, p, n);
    check(p.ndim() == 0 && n.ndim() == 0,
          "xielu: alpha_p and alpha_n must be one number each, (); got ", p.shape(), " and ",
          n.shape(), in_module(), "; reshape(alpha, {}) makes one of (1)");
    check(std::isfinite(a.b) && a.eps <= 0 && std::isfinite(a.eps),
          "xielu: b must be finite and eps finite, 0 or less; got ", a.b, " and ", a.eps,
          in_module());
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, p, n, y, a});
    if (saved) *saved = {x, p, n, a};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.x);
    const GradTensor dx = into.at(0, s.x), dp = into.at(1, s.p), dn = into.at(2, s.n);
    run(dy.device(), Backward{dy, s.x, s.p, s.n, dx, dp, dn, s.attrs});
    return {dx, dp, dn};
  }
};

}  // namespace tally::ops
