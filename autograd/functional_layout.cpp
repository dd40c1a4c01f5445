#include <algorithm>

#include "autograd/functional_basic.h"
#include "autograd/tape.h"
#include "core/ops/cast.h"
#include "core/ops/concat.h"
#include "core/ops/layout.h"
#include "core/ops/view_ops.h"

namespace tally {
namespace {

constexpr size_t kParts = ops::kMaxParts;

Tensor concat_up_to_eight(std::span<const Tensor> parts, int axis) {
  std::array<Tensor, kParts> p;
  std::copy(parts.begin(), parts.end(), p.begin());
  return apply<ops::Concat>({axis}, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
}

}  // namespace

Tensor concat(std::span<const Tensor> parts, int axis) {
  check(!parts.empty(), "concat: needs at least one tensor; got none", in_module());
  if (parts.size() <= kParts) return concat_up_to_eight(parts, axis);
  std::vector<Tensor> joined;  // groups of eight first, as even as a tree gets
  for (size_t i = 0; i < parts.size(); i += kParts) {
    joined.push_back(
        concat_up_to_eight(parts.subspan(i, std::min(kParts, parts.size() - i)), axis));
  }
  return concat(joined, axis);
}

Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int axis) {
  check_defined("split", "x", x);
  if (sizes.size() <= kParts) {
    ops::Split::Attrs a{axis, static_cast<int>(sizes.size()), {}};
    std::copy(sizes.begin(), sizes.end(), a.sizes.begin());
    const auto parts = apply<ops::Split>(a, x);
    return {parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(sizes.size())};
  }
  int64_t total = 0;
  for (int64_t size : sizes) total += size;
  check(total == x.size(axis), "split: the sizes must add up to axis ", axis, " of x ", x.shape(),
        "; they add up to ", total, in_module());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(narrow(x, axis, start, size));
    start += size;
  }
  return parts;
}

Tensor to(const Tensor& x, DType dtype) {
  check_defined("to", "x", x);
  return x.dtype() == dtype ? x : apply<ops::Cast>({dtype}, x);
}
Tensor to(const Tensor& x, Device device) {
  check_defined("to", "x", x);
  return x.device() == device ? x : apply<ops::ToDevice>({device}, x);
}
Tensor copy(const Tensor& x) { return apply<ops::Copy>({}, x); }
Tensor contiguous(const Tensor& x) {
  check_defined("contiguous", "x", x);
  return x.is_contiguous() ? x : copy(x);
}
Tensor reshape(const Tensor& x, const Shape& shape) { return apply<ops::Reshape>({shape}, x); }
Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  return apply<ops::Transpose>({axis_a, axis_b}, x);
}
Tensor permute(const Tensor& x, const Shape& axes) { return apply<ops::Permute>({axes}, x); }
Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length, int64_t step) {
  return apply<ops::Narrow>({axis, start, length, step}, x);
}
Tensor slice(const Tensor& x, int axis, int64_t start, int64_t stop, int64_t step) {
  check_defined("slice", "x", x);
  check(step >= 1, "slice: step must be 1 or more; got ", step, in_module());
  const int64_t n = x.size(axis);
  const auto place = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t from = place(start), to = std::max(place(stop), from);
  return narrow(x, axis, from, (to - from + step - 1) / step, step);
}
Tensor expand(const Tensor& x, const Shape& shape) { return apply<ops::Expand>({shape}, x); }

}  // namespace tally
