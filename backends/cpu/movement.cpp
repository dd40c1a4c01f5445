#include <cstring>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loop_axes.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/cumsum.h"
#include "core/ops/layout.h"
#include "core/ops/view_ops.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

constexpr int64_t kPiece = 1 << 15;  // elements: 128 kB of each operand

// Calls f(i) for i < tasks, each of some elements.
template <class F>
void share(int64_t tasks, int64_t elements, F&& f) {
  parallel_for(tasks, std::max<int64_t>(1, kPiece / std::max<int64_t>(elements, 1)),
               [&](int64_t i, int64_t end) {
                 for (; i < end; ++i) f(i);
               });
}

template <class T>
void copy_run(int64_t n, const T* x, T* y, bool add) {
  if constexpr (std::is_same_v<T, float>) {
    if (add) return isa().add(n, x, y, y, false);
  }
  std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
}

// Both lie in runs.
template <class T>
void copy_runs(LoopAxes<2> axes, const T* x, T* y, bool add) {
  const int64_t n = axes.count() > 0 ? axes.take(-1).size : 1, runs = axes.numel();
  if (runs == 1) {
    return parallel_for(n, kPiece,
                        [&](int64_t i, int64_t end) { copy_run(end - i, x + i, y + i, add); });
  }
  share(runs, n, [&](int64_t i) {
    const auto [to, from] = axes.offsets(i);
    copy_run(n, x + from, y + to, add);
  });
}

// y lies in rows and x in columns: tile by tile, so that every cache line is met once.
template <class T>
void copy_turned(LoopAxes<2> axes, int across, const T* x, T* y) {
  constexpr int64_t kTile = 16;
  const LoopAxis<2> wide = axes.take(-1), tall = axes.take(across);
  const int64_t strips = (tall.size + kTile - 1) / kTile;
  share(axes.numel() * strips, kTile * wide.size, [&](int64_t task) {
    const auto [to, from] = axes.offsets(task / strips);
    const int64_t i0 = task % strips * kTile, rows = std::min(kTile, tall.size - i0);
    for (int64_t j0 = 0; j0 < wide.size; j0 += kTile) {
      const int64_t columns = std::min(kTile, wide.size - j0);
      T* out = y + to + i0 * tall.step[0] + j0;
      const T* in = x + from + i0 + j0 * wide.step[1];
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) out[i * tall.step[0] + j] = in[i + j * wide.step[1]];
    }
  });
}

// Element by element.
template <class T>
void copy_strided(LoopAxes<2> axes, const T* x, T* y) {
  const LoopAxis<2> inner = axes.take(-1);
  share(axes.numel(), inner.size, [&](int64_t i) {
    const auto [to, from] = axes.offsets(i);
    for (int64_t j = 0; j < inner.size; ++j)
      y[to + j * inner.step[0]] = x[from + j * inner.step[1]];
  });
}

template <class T>
void copy(const ops::Copy::Call& c) {
  if (c.y.numel() == 0) return;
  if (c.x.shape != c.y.shape) return plain_loops<T>(c);
  const LoopAxes<2> axes(c.y.shape, {c.y.strides, c.x.strides});
  const T* x = c.x.pointer<T>();
  T* y = c.y.pointer<T>();
  const bool add = c.y.accumulate;
  if (axes.count() == 0 || axes[-1].step == std::array<int64_t, 2>{1, 1}) {
    if (add && !std::is_same_v<T, float>) return plain_loops<T>(c);
    return copy_runs(axes, x, y, add);
  }
  if (add) return plain_loops<T>(c);
  for (int i = 0; i < axes.count() - 1; ++i) {
    if (axes[-1].step[0] == 1 && axes[i].step[1] == 1) return copy_turned(axes, i, x, y);
  }
  copy_strided(axes, x, y);
}

// Zeros, and the gradient in its place.
void narrow_backward(const ops::Narrow::Backward& c) {
  const int64_t n = c.dx.numel();
  if (!c.dx.accumulate && !c.dx.is_dense()) return plain_loops<float>(c);
  if (!c.dx.accumulate) {
    parallel_for(n, kPiece, [&](int64_t i, int64_t end) {
      std::memset(c.dx.pointer<float>() + i, 0, static_cast<size_t>(end - i) * sizeof(float));
    });
  }
  if (c.dy.numel() == 0) return;
  Out part = c.dx;
  part.shape = c.dy.shape;
  part.data = c.dx.pointer<float>() + c.start * c.dx.strides[c.axis];
  part.strides[c.axis] *= c.step;
  copy<float>(ops::Copy::Call{c.dy, part});
}

constexpr int64_t kLine = 1024;

// Neighbouring sums side by side.
void cumsum_lines(const ops::CumSum::Call& c, LoopAxes<2> axes, int side) {
  const LoopAxis<2> line = axes.take(side);
  const int64_t n = c.x.shape[c.axis], pieces = (line.size + kLine - 1) / kLine;
  share(axes.numel() * pieces, n * std::min(kLine, line.size), [&](int64_t task) {
    const auto [from, to] = axes.offsets(task / pieces);
    const int64_t first = task % pieces * kLine, width = std::min(kLine, line.size - first);
    std::array<float, kLine> sum{};
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = c.from_end ? n - 1 - k : k;
      const float* x = c.x.pointer<float>() + from + first + i * c.x.strides[c.axis];
      float* y = c.y.pointer<float>() + to + first + i * c.y.strides[c.axis];
      isa().add(width, x, sum.data(), sum.data(), false);
      isa().scale(width, 1, sum.data(), y, c.y.accumulate);
    }
  });
}

void cumsum(const ops::CumSum::Call& c) {
  Shape others = c.x.shape;
  const int64_t n = std::exchange(others[c.axis], 1);
  if (c.x.numel() == 0) return;
  const LoopAxes<2> axes(others, {c.x.strides, c.y.strides});
  for (int i = 0; i < axes.count(); ++i) {
    if (axes[i].step == std::array<int64_t, 2>{1, 1}) return cumsum_lines(c, axes, i);
  }
  share(axes.numel(), n, [&](int64_t task) {
    const auto [from, to] = axes.offsets(task);
    float sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = c.from_end ? n - 1 - k : k;
      sum += c.x.pointer<float>()[from + i * c.x.strides[c.axis]];
      c.y.put(c.y.pointer<float>()[to + i * c.y.strides[c.axis]], sum);
    }
  });
}

template <class T>
void add_copy() {
  kernels<ops::Copy::Call>[kCPU.kind][static_cast<size_t>(dtype_of<T>)] = copy<T>;
}

}  // namespace

void register_movement() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  add_copy<float>();
  add_copy<double>();
  add_copy<bf16>();
  add_copy<f16>();
  add_copy<int64_t>();
  add_copy<uint8_t>();
  kernels<ops::CumSum::Call>[kCPU.kind][f32] = cumsum;
  kernels<ops::Narrow::Backward>[kCPU.kind][f32] = narrow_backward;
}

}  // namespace tally::cpu
