#pragma once
// The functions of arithmetic, reduction and layout. Included by autograd/functional.h.
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tally {

// Two tensors whose shapes broadcast by NumPy's rule (axes matched from the last, size 1 repeats);
// any strides. The gradient of what was repeated is summed. Error when the shapes do not match or
// the element types differ.

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
/// The larger of each pair; equal ones share the gradient, a NaN wins.
Tensor maximum(const Tensor& a, const Tensor& b);
/// The smaller of each pair; equal ones share the gradient, a NaN wins.
Tensor minimum(const Tensor& a, const Tensor& b);

/// Where `condition` (u8) is not 0 a, else b. All three broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// One tensor of any strides, element by element.

/// factor x
Tensor scale(const Tensor& x, double factor);
/// x + number
Tensor add(const Tensor& x, double number);
Tensor neg(const Tensor& x);
/// |x|, with slope 0 at 0.
Tensor abs(const Tensor& x);
Tensor exp(const Tensor& x);
/// Natural logarithm.
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x)
Tensor rsqrt(const Tensor& x);
/// 1 / x
Tensor reciprocal(const Tensor& x);
Tensor square(const Tensor& x);
/// x to a constant power.
Tensor pow(const Tensor& x, double exponent);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);
/// x held within [low, high]; no gradient outside. Error if low > high.
Tensor clamp(const Tensor& x, double low, double high);

// Reductions over the axes named (none: all), which go, or stay with size 1 if `keepdim`. Any
// strides; sums in f32 for bf16.

/// Of no elements: 0.
Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Of no elements: NaN.
Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// The largest; equal ones share the gradient, a NaN wins. Error where there is no element.
Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// The smallest; equal ones share the gradient, a NaN wins. Error where there is no element.
Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// sqrt(sum x^2); the gradient at 0 is 0.
Tensor norm(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// log sum exp(x), without overflow. Of no elements, or of nothing but -inf: -inf.
Tensor logsumexp(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Mean squared distance from the mean, over n (or over n - 1 if `unbiased`). NaN where that is 0.
Tensor var(const Tensor& x, const Shape& axes = {}, bool keepdim = false, bool unbiased = false);
/// Running sums along an axis.
Tensor cumsum(const Tensor& x, int axis);

// Rows of the last axis.

/// exp(scale x) / sum exp(scale x).   x (..., C)   `mask` (u8, 1 = allowed) broadcasts to x
/// What the mask forbids gets 0, a row without anything allowed is all 0; an allowed row of nothing
/// but -inf is NaN.
Tensor softmax(const Tensor& x, const Tensor& mask = {}, double scale = 1);
/// The logarithm of softmax(x, mask, scale), without overflow; -inf where the mask forbids.
Tensor log_softmax(const Tensor& x, const Tensor& mask = {}, double scale = 1);
/// The k largest of each row from the largest down, and their places (i64). Equal ones in the order
/// of their places; a NaN counts as largest.   x (..., C)   both (..., k)
std::array<Tensor, 2> top_k(const Tensor& x, int64_t k);

// Products and look-ups.

/// a b, batched: a (..., M, K), b (..., K, N), y (..., M, N); the axes in front broadcast. A tensor
/// with one axis is a row (a) or a column (b), and that axis of y goes. `trans_a`, `trans_b`: the
/// matrices are stored transposed. Error unless each has dense rows or dense columns.
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);
/// y[i,j] = x[index[i,j], j] for axis 0, x[i, index[i,j]] for axis 1: one element for each index.
/// index (i64): as many axes as x, none longer but `axis`. Error for an index outside x.
Tensor gather(const Tensor& x, const Tensor& index, int axis);
/// Slices of x along an axis in the order of a list.   index (I) i64. Error for one outside x.
Tensor index_select(const Tensor& x, const Tensor& index, int axis);

// Type and device.

/// x in another element type; x itself if it has it. Error from floating-point to integer.
Tensor to(const Tensor& x, DType dtype);
/// x on another device; x itself if it is there.
Tensor to(const Tensor& x, Device device);

// Layout. All but `copy` and `concat` are views: no number moves, and what is written to one shows
// in the other.

/// A dense copy. Any element type.
Tensor copy(const Tensor& x);
/// x itself where its elements lie one after the other, else a dense copy.
Tensor contiguous(const Tensor& x);
/// The same elements in another shape; one size may be -1. Error where that needs a copy.
Tensor reshape(const Tensor& x, const Shape& shape);
Tensor transpose(const Tensor& x, int axis_a, int axis_b);
/// Axis i of the result is axis axes[i] of x.
Tensor permute(const Tensor& x, const Shape& axes);
/// Elements start, start + step, ... of an axis: `length` of them.
Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length, int64_t step = 1);
/// x[start:stop:step] along an axis as in Python: negative numbers count from the end, and what
/// lies past an end is cut off. Error unless step >= 1.
Tensor slice(const Tensor& x, int axis, int64_t start, int64_t stop, int64_t step = 1);
/// Axes of size 1 repeated, and new axes in front.
Tensor expand(const Tensor& x, const Shape& shape);

/// Tensors after one another along an axis, equal but for it. Any element type. Error for none.
Tensor concat(std::span<const Tensor> parts, int axis);
Tensor concat(std::initializer_list<Tensor> parts, int axis);
/// x cut along an axis into views of these sizes, which must add up to it.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int axis);

}  // namespace tally
