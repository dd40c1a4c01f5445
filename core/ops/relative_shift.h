#pragma once
#include "core/op.h"

namespace tally::ops {

// Scores by distance become scores by key: the step of Transformer-XL's relative positions between
// the product of queries with the vectors of all distances and attention's bias. Dai et al. 2019,
// arXiv:1901.02860, sec. 3.3 and appendix B. Lecture claim L43 (Gopher, Chinchilla).
//
//   forward    y[n,t,j]  = x[n,t,i]  with the distance i = S - T + t - j; 0 where it is negative
//   backward   dx[n,t,i] = dy[n,t,j] with the key j = S - T + t - i; 0 where there is none
//
//   x, dx (...,T,R)    y, dy (...,T,S)    T <= S <= R: T queries are the last of S keys
//   saved: shapes alone
struct RelativeShift {
  static constexpr const char* name = "relative_shift";
  struct Attrs {
    int64_t keys = 0;
  };
  struct Saved {
    Shape x;
    Like y;
  };

  // Element (t, k) of `to` is element (t, S - T + t - k) of `from`: a map that is its own inverse.
  struct Turn {
    static constexpr Kind kind = Kind::movement;
    In from;
    Out to;
    int64_t keys;
    auto views() const { return std::tie(from, to); }
    DType dtype() const { return from.dtype; }
    int64_t tokens() const { return to.shape[-2]; }
    Cost cost() const {
      const double t = static_cast<double>(tokens()), past = static_cast<double>(keys) - t;
      const double blocks = to.cols() > 0 && t > 0 ? static_cast<double>(to.rows()) / t : 0;
      const double seen = blocks * (t * past + t * (t + 1) / 2);
      return Cost{0, seen * static_cast<double>(size_of(from.dtype)), 0} + writes(to);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      if (to.numel() == 0) return;
      for (int64_t row = 0; row < to.rows(); ++row) {
        const int64_t last = keys - tokens() + row % tokens();
        for (int64_t i = 0; i < to.cols(); ++i) {
          T& element = to.row<T>(row)[i];
          to.put(element, i <= last ? A(from.row<T>(row)[last - i]) : A(0));
        }
      }
    }
  };
  struct Forward : Turn {
    static constexpr const char* name = "relative_shift.forward";
    static constexpr const char* formula = "y[t,j] = x[t,S-T+t-j], 0 for keys ahead";
    static constexpr const char* operands = "x, y";
  };
  struct Backward : Turn {
    static constexpr const char* name = "relative_shift.backward";
    static constexpr const char* formula = "dx[t,i] = dy[t,S-T+t-i], 0 where there is none";
    static constexpr const char* operands = "dy, dx";
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    check(x.ndim() >= 2 && x.size(-2) <= a.keys && a.keys <= x.size(-1),
          "relative_shift: x must be (..., T, R) with T <= S <= R for S = ", a.keys, " keys; got ",
          x.shape(), in_module());
    Tensor y = empty(x.shape().with_last(a.keys), x.dtype(), x.device());
    run(x.device(), Forward{{x, y, a.keys}});
    if (saved) *saved = {x.shape(), y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = into.at(0, s.x, s.y.dtype, dy.device());
    if (dx.wanted()) run(dy.device(), Backward{{dy, dx, s.y.shape[-1]}});
    return {dx};
  }
};

}  // namespace tally::ops
