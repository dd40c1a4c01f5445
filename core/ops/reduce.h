#pragma once
#include "core/ops/layout.h"

namespace tally::ops {

/// Which axes a reduction takes together: none named means all; negative ones count from the last.
struct ReduceAttrs {
  Shape axes;
  bool keepdim = false;   // keep them with size 1
  double correction = 0;  // of `var`: it divides by n - correction
};

// The frame of every reduction: `Rule` says what becomes of the n elements that belong to one
// output (core/ops/reductions.h). Sums are kept in the accumulator, f32 for bfloat16.
//
//   forward    y[k] = value(x[k,1..n])
//   backward   dx[k,i] = slope(dy[k], x[k,i], y[k])
//
//   x, dx (...)    y, dy: without the reduced axes, or with size 1 there    saved: x, y where used
//
// A rule has
//   names                          of the op and its two calls
//   needs_x, needs_y               what its backward reads
//   forward_flops(m, n, c)         of m outputs from n elements in all, c the correction
//   backward_flops(m, n, c)
//   value<A>(count, c, each)       each(f) calls f(element) for the elements of the group
//   slope<A>(dy, y, count, c, each)   returns a function from a callable element to its gradient
template <class Rule>
struct Reduce {
  static constexpr const char* name = Rule::names[0];
  using Attrs = ReduceAttrs;
  struct Saved {
    SavedTensor x, y;
    Shape x_shape, kept;  // kept: the shape of y with size 1 for the reduced axes
    double correction = 0;
    Like output;  // y as the caller has it
  };

  struct Forward {
    static constexpr const char* name = Rule::names[1];
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In x;
    Out y;  // broadcasts to x
    double correction = 0;
    static constexpr const char* formula = Rule::formulas[0];
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(Rule::forward_flops(static_cast<double>(y.numel()),
                                       static_cast<double>(x.numel()), correction)) +
             reads(x) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const Shape group = repeated_axes(y, x.shape);
      const std::array outer{broadcast_strides(y, x.shape), x.strides};
      walk(own_axes(y, x.shape), outer, [&](const auto& at) {
        const T* first = x.pointer<T>() + at[1];
        const auto each = [&](auto&& f) {
          walk(group, std::array{x.strides}, [&](const auto& i) { f(A(first[i[0]])); });
        };
        y.put(y.pointer<T>()[at[0]], Rule::template value<A>(group.numel(), correction, each));
      });
    }
  };

  struct Backward {
    static constexpr const char* name = Rule::names[2];
    static constexpr Kind kind = Kind::elementwise;
    static constexpr bool any_strides = true;
    In dy, x, y;  // x and y where the rule needs them; dy and y broadcast to dx
    Out dx;
    double correction = 0;
    static constexpr const char* formula = Rule::formulas[1];
    static constexpr const char* operands = "dy, x, y, dx";
    auto views() const { return std::tie(dy, x, y, dx); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      return flops(Rule::backward_flops(static_cast<double>(dy.numel()),
                                        static_cast<double>(dx.numel()), correction)) +
             reads(dy, x, y) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const Shape& shape = dx.shape;
      const Shape group = repeated_axes(dy, shape);
      const Shape& xs = Rule::needs_x ? x.strides : dx.strides;
      const Shape ys = Rule::needs_y ? broadcast_strides(y, shape) : broadcast_strides(dy, shape);
      const std::array outer{broadcast_strides(dy, shape), dx.strides, xs, ys};
      walk(own_axes(dy, shape), outer, [&](const auto& at) {
        const T* first = x.pointer<T>() + (Rule::needs_x ? at[2] : 0);
        const auto each = [&](auto&& f) {
          walk(group, std::array{xs}, [&](const auto& i) { f(A(first[i[0]])); });
        };
        auto output = [&] { return A(y.pointer<T>()[at[3]]); };
        const auto slope = Rule::template slope<A>(A(dy.pointer<T>()[at[0]]), output, group.numel(),
                                                   correction, each);
        walk(group, std::array{dx.strides, xs}, [&](const auto& i) {
          dx.put(dx.pointer<T>()[at[1] + i[0]], slope([&] { return A(first[i[1]]); }));
        });
      });
    }
  };

  static Tensor forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x);
    const Shape kept = kept_shape(x, a.axes);
    if constexpr (Rule::refuses_empty) {
      check(x.numel() > 0 || kept.numel() == 0, name, ": there is no element to choose from; x is ",
            x.shape(), ", axes ", a.axes, in_module());
    }
    const Tensor y = empty(kept, x.dtype(), x.device());
    run(x.device(), Forward{x, y, a.correction});
    Tensor output = a.keepdim ? y : y.reshape(dropped_shape(x, a.axes));
    if (saved) {
      saved->output = output;
      saved->x_shape = x.shape();
      saved->kept = kept;
      saved->correction = a.correction;
      if (Rule::needs_x) saved->x = x;
      if (Rule::needs_y) saved->y = y;
    }
    return output;
  }

  static std::array<Tensor, 1> backward(const Tensor& dy, Saved&& s, const Into<1>& into = {}) {
    check_upstream(name, dy, s.output);
    const GradTensor dx = gradient_of_shape(into, 0, s.x_shape, dy);
    if (!dx.wanted()) return {};
    run(dy.device(), Backward{with_axes(dy, s.kept), s.x, s.y, dx, s.correction});
    return {dx};
  }

 private:
  /// For each axis of x whether it is reduced.
  static std::array<bool, Shape::kMaxAxes> reduced(const Tensor& x, const Shape& axes) {
    std::array<bool, Shape::kMaxAxes> flags{};
    const int n = x.ndim();
    if (axes.ndim() == 0) flags.fill(true);
    for (int i = 0; i < axes.ndim(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + n : axes[i];
      check(axis >= 0 && axis < n, name, ": axis must be in -", n, "..", n - 1, " for x of shape ",
            x.shape(), "; got ", axes[i], in_module());
      check(!std::exchange(flags[static_cast<size_t>(axis)], true), name, ": axis ", axes[i],
            " is named twice in ", axes, in_module());
    }
    return flags;
  }
  static Shape kept_shape(const Tensor& x, const Shape& axes) {
    const auto flags = reduced(x, axes);
    Shape s = x.shape();
    for (int i = 0; i < s.ndim(); ++i) s[i] = flags[static_cast<size_t>(i)] ? 1 : s[i];
    return s;
  }
  static Shape dropped_shape(const Tensor& x, const Shape& axes) {
    const auto flags = reduced(x, axes);
    Shape s;
    for (int i = 0; i < x.ndim(); ++i) {
      if (!flags[static_cast<size_t>(i)]) s = s.append(x.shape()[i]);
    }
    return s;
  }
  /// dy as it lies, with an axis of size 1 for each that was dropped.
  static Tensor with_axes(const Tensor& dy, const Shape& kept) {
    if (dy.ndim() == kept.ndim()) return dy;
    Shape strides = kept;
    int from = dy.ndim();
    for (int i = kept.ndim() - 1; i >= 0; --i) {
      if (kept[i] == 1) continue;
      do --from;
      while (dy.shape()[from] == 1);
      strides[i] = dy.strides()[from];
    }
    return make_view(dy, kept, strides, dy.offset());
  }
};

}  // namespace tally::ops
