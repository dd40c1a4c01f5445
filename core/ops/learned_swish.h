#pragma once
#include <vector>

#include "core/op.h"
#include "core/ops/activation_functions.h"

namespace tally::ops {

// Swish with a learned beta. Ramachandran et al. 2017, arXiv:1710.05941, section 5.
//
//   forward    y[i,d]  = x[i,d] s(b[d] x[i,d]),   s(z) = 1 / (1 + exp(-z))
//   backward   dx[i,d] = dy[i,d] s (1 + z (1 - s)),   z = b[d] x[i,d]
//              db[d]   = sum_i dy[i,d] x[i,d]^2 s (1 - s),   over d too where beta is one number
//
//   x, y, dx, dy (..., D)    beta, db (D), one a channel, or ()    saved: x, beta
//
// s (1 - s) = (h / (1 + h^2))^2 with h = exp(-|z| / 2): x h / (1 + h^2) is squared, so that no
// infinity meets a zero where x^2 alone would overflow.
struct LearnedSwish {
  static constexpr const char* name = "learned_swish";
  struct Attrs {};
  struct Saved {
    SavedTensor x, beta;
  };

  struct Forward {
    static constexpr const char* name = "learned_swish.forward";
    static constexpr Kind kind = Kind::elementwise;
    In x, beta;
    Out y;
    static constexpr const char* formula = "y = x sigmoid(beta x)";
    static constexpr const char* operands = "x, beta, y";
    auto views() const { return std::tie(x, beta, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(x.numel());
      return flops((TimesSigmoid::value_flops + 1) * n) + reads(x) + reads_if(n > 0, beta) +
             writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t step = beta.is_scalar ? 0 : 1;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A v(x.row<T>(i)[d]);
          y.put(y.row<T>(i)[d], TimesSigmoid::value(v, v * A(beta.at<T>(d * step))));
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "learned_swish.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, x, beta;
    Out dx, db;
    static constexpr const char* formula =
        "z = beta x, s = sigmoid(z), dx = dy s (1 + z (1 - s)), db = sum(dy x^2 s (1 - s))";
    static constexpr const char* operands = "dy, x, beta, dx, db";
    auto views() const { return std::tie(dy, x, beta, dx, db); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      const double n = static_cast<double>(x.numel());
      const double for_dx = dx.defined() ? TimesSigmoid::pair_flops + 2 : 0;
      const double for_db = db.defined() ? 10 : 0;
      const bool any = dx.defined() || db.defined();
      return flops(n * (for_dx + for_db)) + reads_if(any, dy, x) + reads_if(any && n > 0, beta) +
             writes(dx, db);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t step = beta.is_scalar ? 0 : 1;
      std::vector<A> sums(static_cast<size_t>(db.numel()), A(0));
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A g(dy.row<T>(i)[d]), v(x.row<T>(i)[d]), b(beta.at<T>(d * step));
          if (dx.defined()) {
            const A z = v * b;
            dx.put(dx.row<T>(i)[d], g * TimesSigmoid::pair(v, z, clamped(z, -1e4, 1e4)).slope);
          }
          if (db.defined()) sums[static_cast<size_t>(d * step)] += g * to_beta(v, v * b);
        }
      }
      for (int64_t d = 0; d < db.numel(); ++d) db.put(db.at<T>(d), sums[static_cast<size_t>(d)]);
    }
    // x^2 s(z) (1 - s(z))
    template <class A>
    static A to_beta(const A& x, const A& z) {
      const A h = exp(abs(z) * A(-0.5));
      const A part = clamped(x, -1e30, 1e30) * h / (A(1) + h * h);
      return part * part;
    }
  };

  static Tensor forward(const Tensor& x, const Tensor& beta, const Attrs&, Saved* saved) {
    check_defined(name, "x", x);
    check_defined(name, "beta", beta);
    check_same_dtype(name, x, beta);
    check(beta.ndim() == 0 || (x.ndim() >= 1 && beta.shape() == Shape{x.size(-1)}),
          "learned_swish: beta must be one number () or (D) with D the last axis of x; x is ",
          x.shape(), ", beta ", beta.shape(), in_module());
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, beta, y});
    if (saved) *saved = {x, beta};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.x);
    const GradTensor dx = into.at(0, s.x), db = into.at(1, s.beta);
    run(dy.device(), Backward{dy, s.x, s.beta, dx, db});
    return {dx, db};
  }
};

}  // namespace tally::ops
