#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "backends/cpu/reduce.h"
#include "core/ops/reductions.h"

namespace tally::cpu {
namespace {

/// The gradient of a group's elements: how it is spread, and from which factor and shift.
struct GradientRecipe {
  Reduction kind;
  GroupSize size;

  bool is_extreme() const { return kind == Reduction::amax || kind == Reduction::amin; }
  /// Whether the group's elements are folded first: into the mean, or the number of ties.
  bool folds() const { return kind == Reduction::var || is_extreme(); }
  Fold fold() const { return is_extreme() ? Fold::matches : Fold::sum; }
  Spread spread() const {
    if (is_extreme()) return Spread::matches;
    if (kind == Reduction::norm || kind == Reduction::var) return Spread::linear;
    return kind == Reduction::logsumexp ? Spread::exp : Spread::same;
  }
  float shift(float y, float folded) const {
    if (kind == Reduction::var) return folded / size.count;
    if (kind == Reduction::logsumexp) return y < 0 ? finite_or_zero(y) : y;
    return is_extreme() ? y : 0;
  }
  float factor(float dy, float y, float folded) const {
    if (kind == Reduction::mean) return dy / size.count;
    if (kind == Reduction::norm) return dy / (y == 0 ? 1 : y);
    if (kind == Reduction::var) return dy * 2 / size.degrees;
    return is_extreme() ? dy / (folded > 0 ? folded : 1) : dy;
  }
};

/// Views in the order dx, x, dy, y; x and y stand for others where the rule does not need them.
struct Call {
  const In &dy, &x, &y;
  const Out& dx;
  float y_at(int64_t i) const { return y.defined() ? y.pointer<float>()[i] : 0; }
  const float* x_at(int64_t i) const { return x.defined() ? x.pointer<float>() + i : nullptr; }
};

void spread_rows(const GradientRecipe& r, const ReduceLayout<4>& all, const Call& c) {
  const int64_t n = all.group.size;
  all.each_row([&](const auto& at) {
    const float* x = c.x_at(at[1]);
    const float y = c.y_at(at[3]), dy = c.dy.pointer<float>()[at[2]];
    const float folded = r.folds() ? fold_row(r.fold(), n, x, y) : 0;
    const float shift = r.shift(y, folded), factor = r.factor(dy, y, folded);
    float* dx = c.dx.pointer<float>() + at[0];
    parallel_for(n, 16384, [&](int64_t i, int64_t end) {
      isa().spread_row(r.spread(), end - i, x ? x + i : x, &factor, &shift, 0, dx + i,
                       c.dx.accumulate);
    });
  });
}

void spread_lines(const GradientRecipe& r, const ReduceLayout<4>& all, const Call& c) {
  const int64_t n = all.group.size;
  const int64_t dx_stride = all.group.step[0], x_stride = all.group.step[1];
  all.each_piece([&](const auto& at, int64_t width) {
    const float* x = c.x_at(at[1]);
    Line shift{}, factor{}, folded{};
    for (int64_t j = 0; j < width; ++j)
      shift[static_cast<size_t>(j)] = c.y_at(at[3] + j * all.line.step[3]);
    if (r.folds()) fold_lines(r.fold(), n, width, x, x_stride, shift.data(), folded.data());
    for (int64_t j = 0; j < width; ++j) {
      const auto k = static_cast<size_t>(j);
      const float dy = c.dy.pointer<float>()[at[2] + j * all.line.step[2]], y = shift[k];
      shift[k] = r.shift(y, folded[k]);
      factor[k] = r.factor(dy, y, folded[k]);
    }
    float* dx = c.dx.pointer<float>() + at[0];
    parallel_for(n, std::max<int64_t>(1, 8192 / width), [&](int64_t i, int64_t end) {
      for (; i < end; ++i)
        isa().spread_row(r.spread(), width, x ? x + i * x_stride : x, factor.data(), shift.data(),
                         1, dx + i * dx_stride, c.dx.accumulate);
    });
  });
}

template <class Op, Reduction kKind>
void backward(const typename Op::Backward& c) {
  const Shape& sizes = c.dx.shape;
  if (sizes.numel() == 0) return;
  const Shape dy = ops::broadcast_strides(c.dy, sizes);
  const ReduceLayout<4> all(sizes,
                            {c.dx.strides, c.x.defined() ? c.x.strides : c.dx.strides, dy,
                             c.y.defined() ? ops::broadcast_strides(c.y, sizes) : dy},
                            ops::own_axes(c.dy, sizes), 2);
  if (all.lie == Lie::neither) return plain_loops<float>(c);
  const GradientRecipe recipe{kKind, {all.group.size, c.correction}};
  const Call views{c.dy, c.x, c.y, c.dx};
  if (all.lie == Lie::rows)
    spread_rows(recipe, all, views);
  else
    spread_lines(recipe, all, views);
}

template <class Op, Reduction kKind>
void add_backward() {
  kernels<typename Op::Backward>[kCPU.kind][static_cast<size_t>(DType::f32)] = backward<Op, kKind>;
}

}  // namespace

void register_reductions_backward() {
  add_backward<ops::Sum, Reduction::sum>();
  add_backward<ops::Mean, Reduction::mean>();
  add_backward<ops::AMax, Reduction::amax>();
  add_backward<ops::AMin, Reduction::amin>();
  add_backward<ops::Norm, Reduction::norm>();
  add_backward<ops::LogSumExp, Reduction::logsumexp>();
  add_backward<ops::Var, Reduction::var>();
}

}  // namespace tally::cpu
