#pragma once
// The functions of arithmetic, reduction and layout. Included by autograd/functional.h.
#include "autograd/tape.h"
#include "core/ops/all.h"

namespace tally {

// Two tensors whose shapes broadcast by NumPy's rule (axes matched from the last, size 1 repeats);
// any strides. The gradient of what was repeated is summed. Error when the shapes do not match or
// the element types differ.

inline Tensor add(const Tensor& a, const Tensor& b) { return apply<ops::Add>({}, a, b); }
inline Tensor sub(const Tensor& a, const Tensor& b) { return apply<ops::Sub>({}, a, b); }
inline Tensor mul(const Tensor& a, const Tensor& b) { return apply<ops::Mul>({}, a, b); }
inline Tensor div(const Tensor& a, const Tensor& b) { return apply<ops::Div>({}, a, b); }
/// The larger of each pair; equal ones share the gradient, a NaN wins.
inline Tensor maximum(const Tensor& a, const Tensor& b) { return apply<ops::Maximum>({}, a, b); }
/// The smaller of each pair; equal ones share the gradient, a NaN wins.
inline Tensor minimum(const Tensor& a, const Tensor& b) { return apply<ops::Minimum>({}, a, b); }

/// Where `condition` (u8) is not 0 a, else b. All three broadcast.
inline Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return apply<ops::Where>({}, condition, a, b);
}

// One tensor of any strides, element by element.

/// factor x
inline Tensor scale(const Tensor& x, double factor) { return apply<ops::Scale>({factor}, x); }
/// x + number
inline Tensor add(const Tensor& x, double number) { return apply<ops::AddScalar>({number}, x); }
inline Tensor neg(const Tensor& x) { return apply<ops::Neg>({}, x); }
/// |x|, with slope 0 at 0.
inline Tensor abs(const Tensor& x) { return apply<ops::Abs>({}, x); }
inline Tensor exp(const Tensor& x) { return apply<ops::Exp>({}, x); }
/// Natural logarithm.
inline Tensor log(const Tensor& x) { return apply<ops::Log>({}, x); }
inline Tensor sqrt(const Tensor& x) { return apply<ops::Sqrt>({}, x); }
/// 1 / sqrt(x)
inline Tensor rsqrt(const Tensor& x) { return apply<ops::Rsqrt>({}, x); }
/// 1 / x
inline Tensor reciprocal(const Tensor& x) { return apply<ops::Reciprocal>({}, x); }
inline Tensor square(const Tensor& x) { return apply<ops::Square>({}, x); }
/// x to a constant power.
inline Tensor pow(const Tensor& x, double exponent) { return apply<ops::Pow>({exponent}, x); }
inline Tensor sin(const Tensor& x) { return apply<ops::Sin>({}, x); }
inline Tensor cos(const Tensor& x) { return apply<ops::Cos>({}, x); }
inline Tensor erf(const Tensor& x) { return apply<ops::Erf>({}, x); }
/// x held within [low, high]; no gradient outside. Error if low > high.
inline Tensor clamp(const Tensor& x, double low, double high) {
  return apply<ops::Clamp>({low, high}, x);
}

// Reductions over the axes named (none: all), which go, or stay with size 1 if `keepdim`. Any
// strides; sums in f32 for bf16.

/// Of no elements: 0.
inline Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false) {
  return apply<ops::Sum>({axes, keepdim}, x);
}
/// Of no elements: NaN.
inline Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false) {
  return apply<ops::Mean>({axes, keepdim}, x);
}
/// The largest; equal ones share the gradient, a NaN wins. Error where there is no element.
inline Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false) {
  return apply<ops::AMax>({axes, keepdim}, x);
}
/// The smallest; equal ones share the gradient, a NaN wins. Error where there is no element.
inline Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false) {
  return apply<ops::AMin>({axes, keepdim}, x);
}
/// sqrt(sum x^2); the gradient at 0 is 0.
inline Tensor norm(const Tensor& x, const Shape& axes = {}, bool keepdim = false) {
  return apply<ops::Norm>({axes, keepdim}, x);
}
/// log sum exp(x), without overflow. Of no elements, or of nothing but -inf: -inf.
inline Tensor logsumexp(const Tensor& x, const Shape& axes = {}, bool keepdim = false) {
  return apply<ops::LogSumExp>({axes, keepdim}, x);
}
/// Mean squared distance from the mean, over n (or over n - 1 if `unbiased`). NaN where that is 0.
inline Tensor var(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
                  bool unbiased = false) {
  return apply<ops::Var>({axes, keepdim, unbiased ? 1.0 : 0.0}, x);
}
/// Running sums along an axis.
inline Tensor cumsum(const Tensor& x, int axis) { return apply<ops::CumSum>({axis}, x); }

// Rows of the last axis.

/// exp(scale x) / sum exp(scale x).   x (..., C)   `mask` (u8, 1 = allowed) broadcasts to x
/// What the mask forbids gets 0, a row without anything allowed is all 0; an allowed row of nothing
/// but -inf is NaN.
inline Tensor softmax(const Tensor& x, const Tensor& mask = {}, double scale = 1) {
  return apply<ops::Softmax>({scale}, x, mask);
}
/// The logarithm of softmax(x, mask, scale), without overflow; -inf where the mask forbids.
inline Tensor log_softmax(const Tensor& x, const Tensor& mask = {}, double scale = 1) {
  return apply<ops::LogSoftmax>({scale}, x, mask);
}
/// The k largest of each row from the largest down, and their places (i64). Equal ones in the order
/// of their places; a NaN counts as largest.   x (..., C)   both (..., k)
inline std::array<Tensor, 2> top_k(const Tensor& x, int64_t k) { return apply<ops::TopK>({k}, x); }

// Products and look-ups.

/// a b, batched: a (..., M, K), b (..., K, N), y (..., M, N); the axes in front broadcast. A tensor
/// with one axis is a row (a) or a column (b), and that axis of y goes. `trans_a`, `trans_b`: the
/// matrices are stored transposed. Error unless each has dense rows or dense columns.
inline Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false) {
  return apply<ops::MatMul>({trans_a, trans_b}, a, b);
}
/// y[i,j] = x[index[i,j], j] for axis 0, x[i, index[i,j]] for axis 1: one element for each index.
/// index (i64): as many axes as x, none longer but `axis`. Error for an index outside x.
inline Tensor gather(const Tensor& x, const Tensor& index, int axis) {
  return apply<ops::Gather>({axis}, x, index);
}
/// Slices of x along an axis in the order of a list.   index (I) i64. Error for one outside x.
inline Tensor index_select(const Tensor& x, const Tensor& index, int axis) {
  return apply<ops::IndexSelect>({axis}, x, index);
}

// Type and device.

/// x in another element type; x itself if it has it. Error from floating-point to integer.
inline Tensor to(const Tensor& x, DType dtype) {
  check_defined("to", "x", x);
  return x.dtype() == dtype ? x : apply<ops::Cast>({dtype}, x);
}
/// x on another device; x itself if it is there.
inline Tensor to(const Tensor& x, Device device) {
  check_defined("to", "x", x);
  return x.device() == device ? x : apply<ops::ToDevice>({device}, x);
}

// Layout. All but `copy` and `concat` are views: no number moves, and what is written to one shows
// in the other.

/// A dense copy. Any element type.
inline Tensor copy(const Tensor& x) { return apply<ops::Copy>({}, x); }
/// x itself where its elements lie one after the other, else a dense copy.
inline Tensor contiguous(const Tensor& x) {
  check_defined("contiguous", "x", x);
  return x.is_contiguous() ? x : copy(x);
}
/// The same elements in another shape; one size may be -1. Error where that needs a copy.
inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return apply<ops::Reshape>({shape}, x);
}
inline Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  return apply<ops::Transpose>({axis_a, axis_b}, x);
}
/// Axis i of the result is axis axes[i] of x.
inline Tensor permute(const Tensor& x, const Shape& axes) { return apply<ops::Permute>({axes}, x); }
/// Elements start, start + step, ... of an axis: `length` of them.
inline Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length, int64_t step = 1) {
  return apply<ops::Narrow>({axis, start, length, step}, x);
}
/// x[start:stop:step] along an axis as in Python: negative numbers count from the end, and what
/// lies past an end is cut off. Error unless step >= 1.
inline Tensor slice(const Tensor& x, int axis, int64_t start, int64_t stop, int64_t step = 1) {
  check_defined("slice", "x", x);
  check(step >= 1, "slice: step must be 1 or more; got ", step, in_module());
  const int64_t n = x.size(axis);
  const auto place = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t from = place(start), to = std::max(place(stop), from);
  return narrow(x, axis, from, (to - from + step - 1) / step, step);
}
/// Axes of size 1 repeated, and new axes in front.
inline Tensor expand(const Tensor& x, const Shape& shape) { return apply<ops::Expand>({shape}, x); }

/// Tensors after one another along an axis, equal but for it. Any element type. Error for none.
Tensor concat(std::span<const Tensor> parts, int axis);
inline Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
/// x cut along an axis into views of these sizes, which must add up to it.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int axis);

}  // namespace tally
