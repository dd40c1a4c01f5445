#include "autograd/functional_basic.h"

#include <algorithm>

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

}  // namespace tally
