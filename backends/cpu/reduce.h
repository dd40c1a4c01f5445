#pragma once
// What both ways of a reduction share: how its tensors lie, and the fold of one group or of some
// neighbouring groups. Sums are cut by sizes alone and added in order, so threads change no bits.
#include <array>
#include <cmath>
#include <cstddef>

#include "backends/cpu/isa.h"
#include "backends/cpu/loop_axes.h"
#include "core/parallel.h"

namespace tally::cpu {

/// The elements of a group lie in a row, or those of neighbouring groups side by side in lines.
enum class Lie : uint8_t { neither, rows, lines };

/// One axis of groups' elements, for `lines` one axis of neighbouring groups, and the axes around.
/// The first `dense` views must have step 1 along the elements of a row or of a line.
template <size_t N>
struct ReduceLayout {
  Lie lie = Lie::neither;
  LoopAxes<N> outer;
  LoopAxis<N> group{}, line{};

  ReduceLayout(const Shape& sizes, const std::array<Shape, N>& strides, const Shape& own,
               size_t dense)
      : outer(sizes, strides, &own) {
    int reduced = 0, at = -1;
    for (int i = 0; i < outer.count(); ++i) {
      if (!outer[i].reduced) continue;
      ++reduced;
      at = i;
    }
    if (reduced > 1) return;
    const bool nothing = outer.count() == 0;  // one element
    if (reduced == 1) group = outer.take(at);
    if (nothing || (reduced == 1 && is_dense(group, dense))) {
      lie = Lie::rows;
      return;
    }
    for (int i = 0; i < outer.count(); ++i) {
      if (!is_dense(outer[i], dense)) continue;
      line = outer.take(i);
      lie = Lie::lines;
      return;
    }
  }
  /// Calls f(offsets) for each row.
  template <class F>
  void each_row(F&& f) const {
    const int64_t n = group.size;
    share(outer.numel(), n, [&](int64_t i) { f(outer.offsets(i)); });
  }
  /// Calls f(offsets, width) for pieces of at most kWidth neighbouring groups.
  template <class F>
  void each_piece(F&& f) const {
    const int64_t pieces = (line.size + kWidth - 1) / kWidth;
    share(outer.numel() * pieces, group.size * std::min(line.size, kWidth), [&](int64_t i) {
      auto at = outer.offsets(i / pieces);
      const int64_t first = i % pieces * kWidth;
      for (size_t k = 0; k < N; ++k) at[k] += first * line.step[k];
      f(at, std::min(kWidth, line.size - first));
    });
  }
  static constexpr int64_t kWidth = 1024;

 private:
  static bool is_dense(const LoopAxis<N>& axis, size_t views) {
    bool dense = true;
    for (size_t k = 0; k < views; ++k) dense = dense && axis.step[k] == 1;
    return dense;
  }
  /// Many tasks are shared out; few run one after the other, each on all threads.
  template <class F>
  static void share(int64_t tasks, int64_t elements, F&& f) {
    if (tasks < 2 * num_threads() && elements > 8192) {
      for (int64_t i = 0; i < tasks; ++i) f(i);
      return;
    }
    const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(elements, 1));
    parallel_for(tasks, grain, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) f(i);
    });
  }
};

/// Numbers of neighbouring groups.
using Line = std::array<float, ReduceLayout<1>::kWidth>;

inline constexpr int64_t kFoldParts = 64;  // at most, of one group

/// The parts of long sums: cut by sizes alone, added in order.
struct Cut {
  int64_t piece, count;
  Cut(int64_t n, int64_t least)
      : piece(std::max({(n + kFoldParts - 1) / kFoldParts, least, int64_t{1}})),
        count((n + piece - 1) / piece) {}
};

/// How the parts of a group are taken together.
inline Fold joint(Fold fold) {
  return fold == Fold::largest || fold == Fold::smallest ? fold : Fold::sum;
}

/// The fold of one row.
inline float fold_row(Fold fold, int64_t n, const float* x, float shift) {
  const int64_t even = (n + kFoldParts - 1) / kFoldParts;
  const int64_t piece = std::max<int64_t>(16384, (even + 63) / 64 * 64);
  if (n <= piece) return isa().fold_row(fold, n, x, shift);
  std::array<float, kFoldParts> parts;
  parallel_for(n, piece, [&](int64_t i, int64_t end) {
    parts[static_cast<size_t>(i / piece)] = isa().fold_row(fold, end - i, x + i, shift);
  });
  return isa().fold_row(joint(fold), (n + piece - 1) / piece, parts.data(), 0);
}

/// The folds of `width` groups whose elements are the columns of a matrix; shift may be null.
inline void fold_lines(Fold fold, int64_t rows, int64_t width, const float* x, int64_t stride,
                       const float* shift, float* out) {
  const float start = fold == Fold::largest ? -INFINITY : fold == Fold::smallest ? INFINITY : 0;
  std::fill(out, out + width, start);
  const int64_t piece = std::max({(rows + kFoldParts - 1) / kFoldParts, int64_t{16}, 8192 / width});
  if (rows <= piece) return isa().fold_rows(fold, rows, width, x, stride, shift, out);
  auto* parts = reinterpret_cast<float*>(thread_scratch().data());
  parallel_for(rows, piece, [&](int64_t i, int64_t end) {
    float* part = parts + i / piece * width;
    std::fill(part, part + width, start);
    isa().fold_rows(fold, end - i, width, x + i * stride, stride, shift, part);
  });
  isa().fold_rows(joint(fold), (rows + piece - 1) / piece, width, parts, width, nullptr, out);
}

/// The kinds of reductions, and the numbers of a group that they all depend on.
enum class Reduction : uint8_t { sum, mean, amax, amin, norm, logsumexp, var };

struct GroupSize {
  float count, degrees;  // degrees: what the variance divides by
  GroupSize(int64_t n, double correction)
      : count(static_cast<float>(n)),
        degrees(static_cast<double>(n) > correction
                    ? static_cast<float>(static_cast<double>(n) - correction)
                    : NAN) {}
};
inline float finite_or_zero(float x) { return std::isfinite(x) ? x : 0; }

}  // namespace tally::cpu
