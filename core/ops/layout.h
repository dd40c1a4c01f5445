#pragma once
#include "core/ops/strided.h"

namespace tally::ops {

// A dense copy of a tensor of any strides and any element type: the only op that moves elements to
// change how they lie. Nothing calls it behind the caller's back in a forward pass.
//
//   forward    y[i] = x[i]
//   backward   dx[i] = dy[i]                          x, y, dx, dy (...)    saved: nothing
struct Copy {
  static constexpr const char* name = "copy";
  struct Attrs {};
  struct Saved {
    Like y;
  };

  struct Call {
    static constexpr const char* name = "copy";
    static constexpr Kind kind = Kind::movement;
    static constexpr bool any_strides = true;
    static constexpr bool moves_any_type = true;
    In x;
    Out y;
    static constexpr const char* formula = "y = x";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return reads(x) + writes(y); }
    template <class T>
    void reference() const {
      walk(y.shape, std::array{x.strides, y.strides},
           [&](const auto& at) { y.put(y.pointer<T>()[at[1]], acc_t<T>(x.pointer<T>()[at[0]])); });
    }
  };

  static Tensor forward(const Tensor& x, const Attrs&, Saved* saved) {
    check_defined(name, "x", x);
    Tensor y = empty_like(x);
    run(x.device(), Call{x, y});
    if (saved) saved->y = y;
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&&, const Into<1>& into = {});
};

/// Where the gradient of input i goes that has this shape, the type and the device of `like`.
template <int N>
GradTensor gradient_of_shape(const Into<N>& into, int i, const Shape& shape, const Tensor& like) {
  return into.at(i, shape, like.dtype(), like.device());
}

/// Hands on a gradient that holds the right numbers already: itself when it is dense, so that no
/// number moves; added or written to the given target; else as a dense copy. So every gradient that
/// an op's backward gets is dense, and no one needs contiguous() where he cannot write it.
template <int N>
Tensor hand_on(const Tensor& gradient, const Into<N>& into, int i) {
  if (!into.wants(i)) return {};
  if (!into.target[static_cast<size_t>(i)].defined() && gradient.is_contiguous()) return gradient;
  const GradTensor dx = gradient_of_shape(into, i, gradient.shape(), gradient);
  run(gradient.device(), Copy::Call{gradient, dx});
  return dx;
}

inline std::array<Tensor, 1> Copy::backward(const Tensor& dy, Saved&& s, const Into<1>& into) {
  check_upstream(name, dy, s.y);
  return {hand_on(dy, into, 0)};
}

}  // namespace tally::ops
