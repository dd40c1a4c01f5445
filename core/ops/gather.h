#pragma once
#include <vector>

#include "core/ops/layout.h"

namespace tally::ops {

/// Throws Error unless every index lies in 0..limit-1, naming the first that does not and where it
/// is. Any strides. Looks at host memory only: on meta there are no values.
inline void check_indices(const char* op, const Tensor& index, int64_t limit) {
  check_defined(op, "index", index);
  check(index.dtype() == DType::i64, op, ": index must be i64; got ", index.dtype(), in_module());
  if (!backend(index.device()).host_memory()) return;
  const In v = index;
  int64_t position = 0;
  walk(v.shape, std::array{v.strides}, [&](const auto& at) {
    const int64_t value = v.pointer<int64_t>()[at[0]];
    check(value >= 0 && value < limit, op, ": indices must be in 0..", limit - 1, "; position ",
          position, " of ", v.shape, " holds ", value, in_module());
    ++position;
  });
}

// The calls of gather and index_select.
//
//   forward    y[.., i, ..] = x[.., index[i], ..] along one axis; index broadcasts to y
//   backward   dx = 0, then dx[.., index[i], ..] += dy[.., i, ..], summed in the accumulator: in
//              bfloat16 an index that comes often would stop adding up at 256
//
// x is charged for each index, repeats included.
struct GatherCalls {
  struct Forward {
    static constexpr const char* name = "gather.forward";
    static constexpr Kind kind = Kind::movement;
    static constexpr bool any_strides = true;
    In x, index;
    Out y;
    int axis;
    static constexpr const char* formula = "y = x[index] along the axis";
    static constexpr const char* operands = "x, index, y";
    auto views() const { return std::tie(x, index, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return reads_if(y.numel() > 0, index) + reads(y) + writes(y); }
    template <class T>
    void reference() const {
      Shape xs = x.strides;
      xs[axis] = 0;
      const std::array strides{y.strides, xs, broadcast_strides(index, y.shape)};
      walk(y.shape, strides, [&](const auto& at) {
        const T* from = x.pointer<T>() + at[1] + index.index<T>(at[2]) * x.strides[axis];
        Probe<T>::gather(from, 1);
        y.put(y.pointer<T>()[at[0]], acc_t<T>(*from));
      });
    }
  };

  struct Backward {
    static constexpr const char* name = "gather.backward";
    static constexpr Kind kind = Kind::movement;
    static constexpr bool any_strides = true;
    In dy, index;
    Out dx;
    int axis;
    static constexpr const char* formula = "dx[index] += dy";
    static constexpr const char* operands = "dy, index, dx";
    auto views() const { return std::tie(dy, index, dx); }
    DType dtype() const { return dy.dtype; }
    Cost cost() const {
      return flops(dy.numel()) + reads(dy) + reads_if(dy.numel() > 0, index) + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> sums(static_cast<size_t>(dx.numel()), A(0));
      const Shape dense = contiguous_strides(dx.shape);
      Shape others = dense;
      others[axis] = 0;
      const std::array strides{dy.strides, others, broadcast_strides(index, dy.shape)};
      walk(dy.shape, strides, [&](const auto& at) {
        const int64_t to = at[1] + index.index<T>(at[2]) * dense[axis];
        sums[static_cast<size_t>(to)] += A(dy.pointer<T>()[at[0]]);
      });
      walk(dx.shape, std::array{dx.strides, dense}, [&](const auto& at) {
        dx.put(dx.pointer<T>()[at[0]], sums[static_cast<size_t>(at[1])]);
      });
    }
  };

  struct Attrs {
    int axis = 0;
  };
  struct Saved {
    SavedTensor index;
    Shape x;
    int axis = 0;
    Like y;
  };
  static int checked_axis(const char* op, const Tensor& x, int axis) {
    check_defined(op, "x", x);
    check_same_dtype(op, x);
    const int n = x.ndim();
    check(axis >= -n && axis < n, op, ": axis must be in -", n, "..", n - 1, " for x of shape ",
          x.shape(), "; got ", axis, in_module());
    return axis < 0 ? axis + n : axis;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into) {
    const GradTensor dx = gradient_of_shape(into, 0, s.x, dy);
    if (dx.wanted()) run(dy.device(), Backward{dy, s.index, dx, s.axis});
    return {dx, Tensor()};
  }
};

// One element for each index: y[i,j] = x[index[i,j], j] for axis 0, x[i, index[i,j]] for axis 1.
//
//   x, dx (...)    index, y, dy: as many axes, none longer than x's but `axis`    saved: index
struct Gather {
  static constexpr const char* name = "gather";
  using Attrs = GatherCalls::Attrs;
  using Saved = GatherCalls::Saved;

  static Tensor forward(const Tensor& x, const Tensor& index, const Attrs& a, Saved* saved) {
    const int axis = GatherCalls::checked_axis(name, x, a.axis);
    check_indices(name, index, x.size(axis));
    bool fits = index.ndim() == x.ndim();
    for (int i = 0; fits && i < x.ndim(); ++i) fits = i == axis || index.size(i) <= x.size(i);
    check(fits, "gather: index must have the axes of x, none longer except axis ", axis, "; x is ",
          x.shape(), ", index is ", index.shape(), in_module());
    Tensor y = empty(index.shape(), x.dtype(), x.device());
    run(x.device(), GatherCalls::Forward{x, index, y, axis});
    if (saved) *saved = {index, x.shape(), axis, y};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.y);
    return GatherCalls::backward(dy, std::move(s), into);
  }
};

// Whole slices along an axis, in the order of a list: y[i,:] = x[index[i],:] for axis 0.
//
//   x, dx (..., A, ...)    index (I)    y, dy (..., I, ...)    saved: index
struct IndexSelect {
  static constexpr const char* name = "index_select";
  using Attrs = GatherCalls::Attrs;
  using Saved = GatherCalls::Saved;

  static Tensor forward(const Tensor& x, const Tensor& index, const Attrs& a, Saved* saved) {
    const int axis = GatherCalls::checked_axis(name, x, a.axis);
    check_indices(name, index, x.size(axis));
    check_device(name, index, x.device());
    check(index.ndim() == 1, "index_select: index must be a list (I); got ", index.shape(),
          in_module());
    Shape sizes = x.shape(), list, steps;
    sizes[axis] = index.size(0);
    for (int i = axis; i < x.ndim(); ++i) {  // the list along `axis`, repeated over the rest
      list = list.append(i == axis ? index.size(0) : 1);
      steps = steps.append(i == axis ? index.strides()[0] : 0);
    }
    const Tensor along = make_view(index, list, steps, index.offset());
    Tensor y = empty(sizes, x.dtype(), x.device());
    run(x.device(), GatherCalls::Forward{x, along, y, axis});
    if (saved) *saved = {along, x.shape(), axis, y};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.y);
    return GatherCalls::backward(dy, std::move(s), into);
  }
};

}  // namespace tally::ops
