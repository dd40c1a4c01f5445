#pragma once
#include <algorithm>
#include <array>

#include "core/shape.h"

namespace tally::cpu {

/// The offset from the first element of element number `index` of `sizes`, counted in row-major
/// order.
inline int64_t offset_of(int64_t index, const Shape& sizes, const Shape& strides) {
  int64_t offset = 0;
  for (int i = sizes.ndim() - 1; i >= 0 && index > 0; --i) {
    offset += index % sizes[i] * strides[i];
    index /= sizes[i];
  }
  return offset;
}

/// One axis of a loop over several views: its size and the step of each view. Reductions mark the
/// axes that they take together.
template <size_t N>
struct LoopAxis {
  int64_t size = 1;
  std::array<int64_t, N> step{};
  bool reduced = false;

  /// Whether this axis, outside, and `inner` are one.
  bool joins(const LoopAxis& inner) const {
    bool even = reduced == inner.reduced;
    for (size_t k = 0; k < N; ++k) even = even && step[k] == inner.step[k] * inner.size;
    return even;
  }
};

/// The axes of a loop over N views, as few as describe it: without those of size 1, the long steps
/// of the first view outside, neighbours joined where all views step evenly.
template <size_t N>
class LoopAxes {
 public:
  /// `own`: the axes that are not reduced have their size there, the others 1 (null: none is).
  LoopAxes(const Shape& sizes, const std::array<Shape, N>& strides, const Shape* own = nullptr) {
    for (int i = 0; i < sizes.ndim(); ++i) {
      if (sizes[i] == 1) continue;
      LoopAxis<N> axis{sizes[i], {}, own != nullptr && (*own)[i] != sizes[i]};
      for (size_t k = 0; k < N; ++k) axis.step[k] = strides[k][i];
      list_[static_cast<size_t>(count_++)] = axis;
    }
    const auto first = list_.begin(), last = first + count_;
    std::stable_sort(first, last,
                     [](const auto& a, const auto& b) { return a.step[0] > b.step[0]; });
    join();
  }

  int count() const { return count_; }
  /// Negative ones count from the last, the innermost.
  const LoopAxis<N>& operator[](int i) const {
    return list_[static_cast<size_t>(i < 0 ? i + count_ : i)];
  }
  /// Takes an axis out and returns it.
  LoopAxis<N> take(int i) {
    const auto at = list_.begin() + (i < 0 ? i + count_ : i);
    const LoopAxis<N> axis = *at;
    std::move(at + 1, list_.begin() + count_--, at);
    return axis;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < count_; ++i) n *= (*this)[i].size;
    return n;
  }
  /// Where the views are at element `index` of these axes.
  std::array<int64_t, N> offsets(int64_t index) const {
    std::array<int64_t, N> at{};
    for (int i = count_ - 1; i >= 0 && index > 0; --i) {
      const LoopAxis<N>& axis = (*this)[i];
      for (size_t k = 0; k < N; ++k) at[k] += index % axis.size * axis.step[k];
      index /= axis.size;
    }
    return at;
  }

 private:
  void join() {
    int kept = 0;
    for (int i = 1; i < count_; ++i) {
      LoopAxis<N>& outer = list_[static_cast<size_t>(kept)];
      const LoopAxis<N>& inner = list_[static_cast<size_t>(i)];
      if (outer.joins(inner)) {
        outer.size *= inner.size;
        outer.step = inner.step;
      } else {
        list_[static_cast<size_t>(++kept)] = inner;
      }
    }
    count_ = count_ > 0 ? kept + 1 : 0;
  }

  std::array<LoopAxis<N>, Shape::kMaxAxes> list_{};
  int count_ = 0;
};

}  // namespace tally::cpu
