#pragma once
#include <algorithm>

#include "core/ops/view_ops.h"

namespace tally::ops {

/// How many tensors one concat joins, or one split gives, at most.
inline constexpr int kMaxParts = 8;

// Tensors put after one another along an axis, each by a copy into its place.
//
//   forward    y[.., start(p) + i, ..] = x_p[.., i, ..]
//   backward   dx_p[.., i, ..] = dy[.., start(p) + i, ..]
//
//   x_p, dx_p: equal but for the axis; absent ones are left out    saved: the sizes along the axis
struct Concat {
  static constexpr const char* name = "concat";
  struct Attrs {
    int axis = 0;
  };
  struct Saved {
    std::array<int64_t, kMaxParts> sizes{};  // -1: absent
    int axis = 0;
    Like y;
  };
  using Parts = std::array<Tensor, kMaxParts>;

  static Tensor forward(const Tensor& x0, const Tensor& x1, const Tensor& x2, const Tensor& x3,
                        const Tensor& x4, const Tensor& x5, const Tensor& x6, const Tensor& x7,
                        const Attrs& a, Saved* saved) {
    const Parts parts{x0, x1, x2, x3, x4, x5, x6, x7};
    check_defined(name, "the first tensor", x0);
    const int n = x0.ndim(), axis = a.axis < 0 ? a.axis + n : a.axis;
    check(axis >= 0 && axis < n, "concat: axis must be in -", n, "..", n - 1, " for tensors like ",
          x0.shape(), "; got ", a.axis, in_module());
    Shape sizes = x0.shape();
    sizes[axis] = 0;
    for (const Tensor& x : parts) sizes[axis] += x.defined() ? checked(x, x0, axis) : 0;
    Tensor y = empty(sizes, x0.dtype(), x0.device());
    int64_t start = 0;
    for (const Tensor& x : parts) {
      if (!x.defined()) continue;
      run(y.device(), Copy::Call{x, y.narrow(axis, start, x.size(axis))});
      start += x.size(axis);
    }
    if (!saved) return y;
    saved->axis = axis;
    saved->y = y;
    for (size_t p = 0; p < parts.size(); ++p) {
      saved->sizes[p] = parts[p].defined() ? parts[p].size(axis) : -1;
    }
    return y;
  }

  static Parts backward(const Tensor& dy, Saved&& s, const Into<kMaxParts>& into = {}) {
    check_upstream(name, dy, s.y);
    Parts dx;
    int64_t start = 0;
    for (int p = 0; p < kMaxParts; ++p) {
      const int64_t size = s.sizes[static_cast<size_t>(p)];
      if (size < 0) continue;
      dx[static_cast<size_t>(p)] = hand_on(dy.narrow(s.axis, start, size), into, p);
      start += size;
    }
    return dx;
  }

 private:
  /// The size of x along the axis; Error unless it fits beside the first.
  static int64_t checked(const Tensor& x, const Tensor& first, int axis) {
    check(x.dtype() == first.dtype(), "concat: all tensors must hold one type; got ", first.dtype(),
          " and ", x.dtype(), in_module(), "; convert with to(x, dtype)");
    check_device(name, x, first.device());
    bool fits = x.ndim() == first.ndim();
    for (int i = 0; fits && i < x.ndim(); ++i) fits = i == axis || x.size(i) == first.size(i);
    check(fits, "concat: shapes must be equal but for axis ", axis, "; got ", first.shape(),
          " and ", x.shape(), in_module());
    return x.size(axis);
  }
};

// A tensor cut along an axis into views: no number moves. The backward pass writes each part of dx
// once; if a part has no gradient, the first one that has brings the zeros.
//
//   forward    y_p[.., i, ..] = x[.., start(p) + i, ..]
//   backward   dx[.., start(p) + i, ..] = dy_p[.., i, ..]
//
//   x, dx (..., sum of sizes, ...)    y_p, dy_p (..., sizes[p], ...)    saved: the shape of x
struct Split {
  static constexpr const char* name = "split";
  struct Attrs {
    int axis = 0, parts = 0;
    std::array<int64_t, kMaxParts> sizes{};
  };
  struct Saved {
    Attrs attrs;
    Like x;
  };
  using Parts = std::array<Tensor, kMaxParts>;

  static Parts forward(const Tensor& x, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    const int n = x.ndim(), axis = a.axis < 0 ? a.axis + n : a.axis;
    check(axis >= 0 && axis < n, "split: axis must be in -", n, "..", n - 1, " for x of shape ",
          x.shape(), "; got ", a.axis, in_module());
    int64_t total = 0;
    for (int p = 0; p < a.parts; ++p) total += a.sizes[static_cast<size_t>(p)];
    check(total == x.size(axis), "split: the sizes must add up to axis ", axis, " of x ", x.shape(),
          "; they add up to ", total, in_module());
    Parts parts;
    int64_t start = 0;
    for (size_t p = 0; p < static_cast<size_t>(a.parts); ++p) {
      parts[p] = x.narrow(axis, start, a.sizes[p]);
      start += a.sizes[p];
    }
    if (saved) *saved = {{axis, a.parts, a.sizes}, x};
    return parts;
  }

  static std::array<Tensor, 1> backward(const Parts& dy, Saved&& s, const Into<1>& into = {}) {
    const auto first = std::find_if(dy.begin(), dy.end(), [](auto& t) { return t.defined(); });
    if (!into.wants(0) || first == dy.end()) return {};
    const GradTensor dx = into.at(0, s.x.shape, s.x.dtype, s.x.device);
    const size_t parts = static_cast<size_t>(s.attrs.parts);
    const bool gaps = std::any_of(dy.begin(), dy.begin() + s.attrs.parts,
                                  [](const Tensor& t) { return !t.defined(); });
    bool zeros = gaps && !dx.accumulates();  // still to be written, beside the first gradient
    int64_t start = 0;
    for (size_t p = 0; p < parts; ++p) {
      const int64_t size = s.attrs.sizes[p];
      const Tensor part = dx.tensor().narrow(s.attrs.axis, start, size);
      if (dy[p].defined()) check_upstream(name, dy[p], part);
      if (dy[p].defined() && std::exchange(zeros, false)) {
        run(dy[p].device(), Narrow::Backward{dy[p], dx, s.attrs.axis, start, 1});
      } else if (dy[p].defined()) {
        run(dy[p].device(), Copy::Call{dy[p], GradTensor(part, dx.accumulates())});
      }
      start += size;
    }
    return {dx};
  }
};

}  // namespace tally::ops
