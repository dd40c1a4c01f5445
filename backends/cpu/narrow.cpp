#include "backends/cpu/narrow.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loop_axes.h"
#include "core/backend.h"
#include "core/ops/all.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

constexpr int64_t kChunk = int64_t{1} << 15;

// Every element of two views of one shape, by lines along the last axis.
template <class From, class To>
void convert(const View& x, const View& y) {
  if (x.numel() == 0) return;
  const auto line = [](int64_t n, const From* from, int64_t from_step, To* to, int64_t to_step) {
    if (from_step == 1 && to_step == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = To(static_cast<float>(from[i]));
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = To(static_cast<float>(from[i * from_step]));
  };
  if (x.is_dense() && y.is_dense()) {
    return parallel_for(x.numel(), kChunk, [&](int64_t begin, int64_t end) {
      line(end - begin, x.pointer<From>() + begin, 1, y.pointer<To>() + begin, 1);
    });
  }
  Shape lines = x.shape;
  const int last = lines.ndim() - 1;
  const int64_t n = std::exchange(lines[last], 1);
  parallel_for(lines.numel(), std::max<int64_t>(kChunk / n, 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      line(n, x.pointer<From>() + offset_of(i, lines, x.strides), x.strides[last],
           y.pointer<To>() + offset_of(i, lines, y.strides), y.strides[last]);
    }
  });
}

// The dense view of a shape over some memory.
View dense(const View& like, void* data) {
  View v = like;
  v.data = data, v.dtype = DType::f32, v.storage = nullptr;
  int64_t stride = 1;
  for (int axis = v.shape.ndim() - 1; axis >= 0; --axis) {
    v.strides[axis] = stride;
    stride *= v.shape[axis];
  }
  v.row_stride = v.cols();
  return v;
}

void cast(const ops::Cast::Call& c) {
  if (!c.y.accumulate && c.x.dtype == DType::f32 && c.y.dtype == DType::bf16)
    return convert<float, bf16>(c.x, c.y);
  if (!c.y.accumulate && c.x.dtype == DType::bf16 && c.y.dtype == DType::f32)
    return convert<bf16, float>(c.x, c.y);
  c.x.dtype == DType::f32 ? c.reference<float>() : c.reference<bf16>();
}

void stochastic_round(const ops::StochasticRound::Call& c) {
  if (!c.x.is_dense() || !c.y.is_dense()) return c.reference<float>();
  const float* x = c.x.pointer<float>();
  bf16* y = c.y.pointer<bf16>();
  parallel_for(c.x.numel(), kChunk, [&](int64_t begin, int64_t end) {
    ops::RoundingBits bits(c.attrs.seed, c.attrs.stream_of_step());
    for (int64_t i = begin; i < end; ++i) y[i] = ops::StochasticRound::rounded(x[i], bits.at(i));
  });
}

template <class C>
void register_one() {
  auto& table = kernels<C>[kCPU.kind];
  const auto f32 = static_cast<size_t>(DType::f32), bf16 = static_cast<size_t>(DType::bf16);
  if (table[f32] && !table[bf16]) table[bf16] = through_f32<C>;
}
template <class... C>
void register_all_of(TypeList<C...>) {
  (register_one<C>(), ...);
}

}  // namespace

Scratch::Scratch(size_t bytes) : data_(backend(kCPU).allocate(bytes)), bytes_(bytes) {}
Scratch::~Scratch() { backend(kCPU).release(data_, bytes_); }

Widened::Widened(View& view, bool reads, bool writes) : narrow_(view), writes_(writes) {
  if (!view.defined() || view.dtype != DType::bf16) return;
  wide_.emplace(sizeof(float) * static_cast<size_t>(view.numel()));
  view = dense(view, wide_->data());
  if (reads) convert<bf16, float>(narrow_, view);
}

Widened::~Widened() {
  if (wide_ && writes_) convert<float, bf16>(dense(narrow_, wide_->data()), narrow_);
}

void register_narrow() {
  for (const DType t : {DType::f32, DType::bf16})
    kernels<ops::Cast::Call>[kCPU.kind][static_cast<size_t>(t)] = cast;
  kernels<ops::StochasticRound::Call>[kCPU.kind][static_cast<size_t>(DType::f32)] =
      stochastic_round;
  register_all_of(AllCalls{});
}

}  // namespace tally::cpu
