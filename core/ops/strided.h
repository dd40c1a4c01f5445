#pragma once
#include <algorithm>

#include "core/op.h"

namespace tally::ops {

// How ops that take any strides visit their elements, and NumPy's rule of broadcasting: axes are
// matched from the last, and an axis of size 1, or one that is not there, is repeated.

/// True when `v` repeats along axis `i` (counted from the last: 1, 2, ...) of `shape`.
inline bool repeats(const View& v, const Shape& shape, int i) {
  return i > v.shape.ndim() || v.shape[-i] != shape[-i];
}
/// Strides of `v` seen in `shape`, to which it broadcasts: 0 where it repeats.
inline Shape broadcast_strides(const View& v, const Shape& shape) {
  Shape s = shape;
  for (int i = 1; i <= shape.ndim(); ++i) s[-i] = repeats(v, shape, i) ? 0 : v.strides[-i];
  return s;
}
/// `shape` with 1 for the axes along which `v` repeats.
inline Shape own_axes(const View& v, const Shape& shape) {
  Shape s = shape;
  for (int i = 1; i <= shape.ndim(); ++i) s[-i] = repeats(v, shape, i) ? 1 : shape[-i];
  return s;
}
/// `shape` with 1 for the axes that `v` has itself: the repetitions of each of its elements.
inline Shape repeated_axes(const View& v, const Shape& shape) {
  Shape s = shape;
  for (int i = 1; i <= shape.ndim(); ++i) s[-i] = repeats(v, shape, i) ? shape[-i] : 1;
  return s;
}

/// Calls f(offsets) for every position of `sizes` in row-major order: the offset from its first
/// element, one for each of the N lists of strides.
template <size_t N, class F>
void walk(const Shape& sizes, const std::array<Shape, N>& strides, F&& f) {
  const int axes = sizes.ndim();
  std::array<int64_t, N> offset{};
  if (axes == 0) return f(offset);
  if (sizes.numel() == 0) return;
  std::array<int64_t, Shape::kMaxAxes> at{};
  for (;;) {
    for (int64_t i = 0; i < sizes[-1]; ++i) {
      f(offset);
      for (size_t k = 0; k < N; ++k) offset[k] += strides[k][-1];
    }
    for (size_t k = 0; k < N; ++k) offset[k] -= strides[k][-1] * sizes[-1];
    int axis = axes - 2;  // carry into the outer axes
    for (; axis >= 0; --axis) {
      int64_t& position = at[static_cast<size_t>(axis)];
      for (size_t k = 0; k < N; ++k) offset[k] += strides[k][axis];
      if (++position < sizes[axis]) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= strides[k][axis] * position;
      position = 0;
    }
    if (axis < 0) return;
  }
}

/// Gives each element of `out`, which broadcasts to `shape`, the sum over its repetitions of
/// term(offsets), the offsets being those of N lists of strides over `shape`.
template <class T, size_t N, class Term>
void sum_repetitions(const Out& out, const Shape& shape, const std::array<Shape, N>& strides,
                     Term&& term) {
  using A = acc_t<T>;
  const Shape rest = repeated_axes(out, shape);
  const bool once = rest.numel() == 1;
  std::array<Shape, N + 1> outer;
  std::copy(strides.begin(), strides.end(), outer.begin());
  outer[N] = broadcast_strides(out, shape);
  walk(own_axes(out, shape), outer, [&](const auto& start) {
    A sum(0);
    walk(rest, strides, [&](auto at) {
      for (size_t k = 0; k < N; ++k) at[k] += start[k];
      if (once)
        sum = term(at);
      else
        sum += term(at);
    });
    out.put(out.pointer<T>()[start[N]], sum);
  });
}
/// The additions of sum_repetitions.
inline double repetition_flops(const View& out, const Shape& shape) {
  return repeated_axes(out, shape).numel() == 1 ? 0 : static_cast<double>(shape.numel());
}

}  // namespace tally::ops
