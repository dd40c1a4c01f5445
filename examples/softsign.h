#pragma once
#include "core/op.h"

// An op from outside: one file with the maths, the backward, the cost and what is saved. Nothing of
// it is known to the library.
namespace mine {

// Softsign: a sigmoid without an exponential. Bergstra et al. 2009, section 2.
//
//   forward    y[i]  = x[i] / (1 + |x[i]|)
//   backward   dx[i] = dy[i] / (1 + |x[i]|)^2
//
//   x, y, dx, dy (...), equal shapes    saved: x
struct Softsign {
  static constexpr const char* name = "softsign";
  struct Attrs {};
  struct Saved {
    tally::SavedTensor x;
  };

  struct Forward {
    static constexpr const char* name = "softsign.forward";
    static constexpr tally::Kind kind = tally::Kind::elementwise;
    tally::In x;
    tally::Out y;
    auto views() const { return std::tie(x, y); }
    tally::DType dtype() const { return x.dtype; }
    tally::Cost cost() const {
      return tally::flops(2.0 * static_cast<double>(x.numel())) + tally::reads(x) +
             tally::writes(y);
    }
    template <class T>
    void reference() const {
      using A = tally::acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A v(x.row<T>(i)[d]);
          y.put(y.row<T>(i)[d], v / (A(1) + tally::larger(v, -v)));
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "softsign.backward";
    static constexpr tally::Kind kind = tally::Kind::elementwise;
    tally::In dy, x;
    tally::Out dx;
    auto views() const { return std::tie(dy, x, dx); }
    tally::DType dtype() const { return x.dtype; }
    tally::Cost cost() const {
      return tally::flops(3.0 * static_cast<double>(x.numel())) + tally::reads(dy, x) +
             tally::writes(dx);
    }
    template <class T>
    void reference() const {
      using A = tally::acc_t<T>;
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A v(x.row<T>(i)[d]), size = A(1) + tally::larger(v, -v);
          dx.put(dx.row<T>(i)[d], A(dy.row<T>(i)[d]) / (size * size));
        }
      }
    }
  };

  static tally::Tensor forward(const tally::Tensor& x, const Attrs&, Saved* saved) {
    tally::check_defined(name, "x", x);
    tally::check_same_dtype(name, x);
    tally::Tensor y = tally::empty_like(x);
    tally::run(x.device(), Forward{x, y});
    if (saved) saved->x = x;
    return y;
  }
  static std::array<tally::Tensor, 1> backward(const tally::Tensor& dy, Saved&& s,
                                               const tally::Into<1>& into = {}) {
    tally::check_upstream(name, dy, s.x);
    const tally::GradTensor dx = into.at(0, s.x);
    tally::run(dy.device(), Backward{dy, s.x, dx});
    return {dx};
  }
};

using Calls = tally::TypeList<Softsign::Forward, Softsign::Backward>;

}  // namespace mine
