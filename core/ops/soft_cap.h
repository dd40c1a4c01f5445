#pragma once
#include "core/ops/cap.h"

namespace tally::ops {

// Soft cap: scores are pressed into (-c, c), almost unchanged near 0. Gemma 2, arXiv:2408.00118,
// section 2; Bello et al. 2016, arXiv:1611.09940, section 5.
//
//   forward    y[i]  = c tanh(x[i] / c)
//   backward   dx[i] = dy[i] (1 - (y[i] / c)^2)
//
//   x, y, dx, dy (...), equal shapes    saved: x, so that the slope is exact in bf16 too
struct SoftCap {
  static constexpr const char* name = "soft_cap";
  struct Attrs {
    double cap = 30;
  };
  struct Saved {
    SavedTensor x;
    double cap = 0;
  };

  struct Forward {
    static constexpr const char* name = "soft_cap.forward";
    static constexpr Kind kind = Kind::elementwise;
    In x;
    Out y;
    double cap;
    static constexpr const char* formula = "y = cap tanh(x / cap)";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return flops(3.0 * static_cast<double>(x.numel())) + reads(x) + writes(y); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          y.put(y.row<T>(i)[d], A(cap) * tanh(A(x.row<T>(i)[d]) / A(cap)));
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "soft_cap.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, x;
    Out dx;
    double cap;
    static constexpr const char* formula = "dx = dy (1 - tanh(x / cap)^2)";
    static constexpr const char* operands = "dy, x, dx";
    auto views() const { return std::tie(dy, x, dx); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(5.0 * static_cast<double>(x.numel())) + reads(dy, x) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A t = tanh(A(x.row<T>(i)[d]) / A(cap));
          dx.put(dx.row<T>(i)[d], A(dy.row<T>(i)[d]) * (A(1) - t * t));
        }
      }
    }
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    check_cap(name, "the cap", a.cap);
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, y, a.cap});
    if (saved) *saved = {x, a.cap};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.x);
    const GradTensor dx = into.at(0, s.x);
    run(dy.device(), Backward{dy, s.x, dx, s.cap});
    return {dx};
  }
};

}  // namespace tally::ops
