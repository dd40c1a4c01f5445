#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace tally {

/// Sizes (or strides) of at most 6 axes; no heap, trivially copyable.
class Shape {
 public:
  static constexpr int kMaxAxes = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes) {
    check(sizes.size() <= kMaxAxes, "shape: at most 6 axes; got ", sizes.size());
    for (int64_t size : sizes) sizes_[static_cast<size_t>(ndim_++)] = size;
  }
  int ndim() const { return ndim_; }
  /// Size of an axis; negative axes count from the end. No check: see Tensor::size.
  int64_t operator[](int axis) const { return sizes_[static_cast<size_t>(at(axis))]; }
  int64_t& operator[](int axis) { return sizes_[static_cast<size_t>(at(axis))]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < ndim_; ++i) n *= sizes_[static_cast<size_t>(i)];
    return n;
  }
  Shape drop_last() const {
    Shape s = *this;
    if (s.ndim_ > 0) s.sizes_[static_cast<size_t>(--s.ndim_)] = 0;
    return s;
  }
  Shape with_last(int64_t size) const {
    Shape s = *this;
    s[-1] = size;
    return s;
  }
  Shape append(int64_t size) const {
    check(ndim_ < kMaxAxes, "shape: at most 6 axes; cannot append to ", to_text());
    Shape s = *this;
    s.sizes_[static_cast<size_t>(s.ndim_++)] = size;
    return s;
  }
  bool operator==(const Shape&) const = default;
  std::string to_text(std::string_view axes = {}) const;

 private:
  int at(int axis) const { return axis < 0 ? axis + ndim_ : axis; }
  std::array<int64_t, kMaxAxes> sizes_{};
  int32_t ndim_ = 0;
};

inline std::string to_text(const Shape& s) { return s.to_text(); }

/// Row-major strides of a dense tensor.
Shape contiguous_strides(const Shape& sizes);
/// Throws Error unless every size is >= 0 and the number of bytes fits.
void check_sizes(const Shape& sizes, size_t element_size);
/// The shape that both broadcast to by NumPy's rule; Error that names `op` and both where none
/// does.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace tally
