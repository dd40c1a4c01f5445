#pragma once
#include "core/ops/reductions.h"

namespace tally::ops {

// Views as ops: the forward pass looks at the same numbers in another way and moves none, so y
// shares its memory with x. The backward pass looks back; for `narrow` it writes zeros around, for
// `expand` it sums over the repetitions.
//
//   saved: the shape of x

struct Reshape {
  static constexpr const char* name = "reshape";
  struct Attrs {
    Shape shape;  // one size may be -1
  };
  struct Saved {
    Shape x;
    Like y;
  };
  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    Tensor y = x.reshape(a.shape);
    if (saved) *saved = {x.shape(), y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    const Tensor dense = dy.is_contiguous() ? dy : Copy::forward(dy, {}, nullptr);
    return {hand_on(dense.reshape(s.x), into, 0)};
  }
};

struct Transpose {
  static constexpr const char* name = "transpose";
  struct Attrs {
    int axis_a = -2, axis_b = -1;
  };
  struct Saved {
    Attrs attrs;
    Like y;
  };
  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    Tensor y = x.transpose(a.axis_a, a.axis_b);
    if (saved) *saved = {a, y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    return {hand_on(dy.transpose(s.attrs.axis_a, s.attrs.axis_b), into, 0)};
  }
};

struct Permute {
  static constexpr const char* name = "permute";
  struct Attrs {
    Shape axes;  // axis i of y is axis axes[i] of x
  };
  struct Saved {
    Shape axes;
    Like y;
  };
  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    const Shape axes = resolve(x, a.axes);
    Tensor y = permuted(x, axes);
    if (saved) *saved = {axes, y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    Shape inverse = s.axes;
    for (int i = 0; i < inverse.ndim(); ++i) inverse[static_cast<int>(s.axes[i])] = i;
    return {hand_on(permuted(dy, inverse), into, 0)};
  }

 private:
  static Shape resolve(const Tensor& x, Shape axes) {
    bool seen[Shape::kMaxAxes] = {}, good = axes.ndim() == x.ndim();
    for (int i = 0; good && i < axes.ndim(); ++i) {
      if (axes[i] < 0) axes[i] += x.ndim();
      good = axes[i] >= 0 && axes[i] < x.ndim() && !std::exchange(seen[axes[i]], true);
    }
    check(good, "permute: axes must name each axis of ", x.shape(), " once; got ", axes,
          in_module());
    return axes;
  }
  static Tensor permuted(const Tensor& x, const Shape& axes) {
    Shape sizes = axes, strides = axes;
    for (int i = 0; i < axes.ndim(); ++i) {
      sizes[i] = x.shape()[static_cast<int>(axes[i])];
      strides[i] = x.strides()[static_cast<int>(axes[i])];
    }
    return make_view(x, sizes, strides, x.offset());
  }
};

// Elements start, start + step, ... of an axis.
//
//   backward   dx = 0, then dx[..., start + i step, ...] = dy[..., i, ...]
struct Narrow {
  static constexpr const char* name = "narrow";
  struct Attrs {
    int axis = 0;
    int64_t start = 0, length = 0, step = 1;
  };
  struct Saved {
    Shape x;
    Attrs attrs;
    Like y;
  };

  struct Backward {
    static constexpr const char* name = "narrow.backward";
    static constexpr Kind kind = Kind::movement;
    static constexpr bool any_strides = true;
    In dy;
    Out dx;
    int axis;
    int64_t start, step;
    static constexpr const char* formula = "dx = dy in the slice, 0 elsewhere";
    static constexpr const char* operands = "dy, dx";
    auto views() const { return std::tie(dy, dx); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      if (!dx.accumulate) return reads(dy) + writes(dx);
      return flops(dy.numel()) + reads(dy, dy) + Cost{0, 0, dy.nbytes()};  // dx: that part alone
    }
    template <class T>
    void reference() const {
      T* to = dx.pointer<T>();
      if (!dx.accumulate) {
        walk(dx.shape, std::array{dx.strides}, [&](const auto& at) { to[at[0]] = T(0.0f); });
      }
      Shape part = dx.strides;
      part[axis] *= step;
      const int64_t first = dy.numel() ? start * dx.strides[axis] : 0;
      walk(dy.shape, std::array{dy.strides, part},
           [&](const auto& at) { dx.put(to[first + at[1]], acc_t<T>(dy.pointer<T>()[at[0]])); });
    }
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    Tensor y = x.narrow(a.axis, a.start, a.length, a.step);
    if (saved) *saved = {x.shape(), a, y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    const int axis = s.attrs.axis < 0 ? s.attrs.axis + s.x.ndim() : s.attrs.axis;
    check_upstream(name, dy, s.y);
    const GradTensor dx = gradient_of_shape(into, 0, s.x, dy);
    if (!dx.wanted()) return {};
    run(dy.device(), Backward{dy, dx, axis, s.attrs.start, s.attrs.step});
    return {dx};
  }
};

// Axes of size 1 repeated, and new axes in front.
struct Expand {
  static constexpr const char* name = "expand";
  struct Attrs {
    Shape shape;
  };
  struct Saved {
    Shape x;
    Like y;
  };
  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    Tensor y = x.expand(a.shape);
    if (saved) *saved = {x.shape(), y};
    return y;
  }
  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.y);
    return {sum_to_shape(dy, s.x, into, 0)};
  }
};

}  // namespace tally::ops
