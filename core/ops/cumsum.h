#pragma once
#include "core/ops/layout.h"

namespace tally::ops {

// Running sums along an axis, in the accumulator.
//
//   forward    y[i]  = sum_{j <= i} x[j]
//   backward   dx[i] = sum_{j >= i} dy[j]            x, y, dx, dy (...)    saved: nothing
struct CumSum {
  static constexpr const char* name = "cumsum";
  struct Attrs {
    int axis = -1;
  };
  struct Saved {
    int axis = 0;
    Like y;
  };

  struct Call {
    static constexpr const char* name = "cumsum";
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In x;
    Out y;
    int axis;
    bool from_end;
    static constexpr const char* formula = "y[i] = x[0] + ... + x[i]";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return flops(x.numel()) + reads(x) + writes(y); }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      Shape others = x.shape;
      const int64_t n = std::exchange(others[axis], 1);
      walk(others, std::array{x.strides, y.strides}, [&](const auto& at) {
        A sum(0);
        for (int64_t k = 0; k < n; ++k) {
          const int64_t i = from_end ? n - 1 - k : k;
          sum += A(x.pointer<T>()[at[0] + i * x.strides[axis]]);
          y.put(y.pointer<T>()[at[1] + i * y.strides[axis]], sum);
        }
      });
    }
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    const int n = x.ndim(), axis = a.axis < 0 ? a.axis + n : a.axis;
    check(axis >= 0 && axis < n, "cumsum: axis must be in -", n, "..", n - 1, " for x of shape ",
          x.shape(), "; got ", a.axis, in_module());
    Tensor y = empty_like(x);
    run(x.device(), Call{x, y, axis, false});
    if (saved) *saved = {axis, y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = gradient_of_shape(into, 0, s.y.shape, dy);
    if (dx.wanted()) run(dy.device(), Call{dy, dx, s.axis, true});
    return {dx};
  }
};

}  // namespace tally::ops
