#include "backends/cpu/reduce.h"

#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/reductions.h"

namespace tally::cpu {
namespace {

/// One or two folds: the first of two finds what is taken out of the elements of the second.
struct Recipe {
  Reduction kind;
  GroupSize size;

  bool two_folds() const { return kind == Reduction::var || kind == Reduction::logsumexp; }
  Fold first() const { return kind == Reduction::var ? Fold::sum : Fold::largest; }
  Fold last() const {
    switch (kind) {
      case Reduction::amax:
        return Fold::largest;
      case Reduction::amin:
        return Fold::smallest;
      case Reduction::logsumexp:
        return Fold::exps;
      case Reduction::norm:
      case Reduction::var:
        return Fold::squares;
      default:
        return Fold::sum;
    }
  }
  float shift(float folded) const {
    return kind == Reduction::var ? folded / size.count : finite_or_zero(folded);
  }
  float result(float folded, float shift) const {
    switch (kind) {
      case Reduction::mean:
        return folded / size.count;
      case Reduction::norm:
        return std::sqrt(folded);
      case Reduction::logsumexp:
        return std::log(folded) + shift;
      case Reduction::var:
        return folded / size.degrees;
      default:
        return folded;
    }
  }
};

void reduce_rows(const Recipe& r, const ReduceLayout<2>& all, const In& x, const Out& y) {
  const int64_t n = all.group.size;
  all.each_row([&](const auto& at) {
    const float* row = x.pointer<float>() + at[0];
    const float shift = r.two_folds() ? r.shift(fold_row(r.first(), n, row, 0)) : 0;
    y.put(y.pointer<float>()[at[1]], r.result(fold_row(r.last(), n, row, shift), shift));
  });
}

void reduce_lines(const Recipe& r, const ReduceLayout<2>& all, const In& x, const Out& y) {
  const int64_t n = all.group.size, stride = all.group.step[0];
  all.each_piece([&](const auto& at, int64_t width) {
    const float* first = x.pointer<float>() + at[0];
    Line shift{}, folded;
    if (r.two_folds()) {
      fold_lines(r.first(), n, width, first, stride, nullptr, shift.data());
      for (float& s : shift) s = r.shift(s);
    }
    fold_lines(r.last(), n, width, first, stride, shift.data(), folded.data());
    for (int64_t j = 0; j < width; ++j) {
      const auto k = static_cast<size_t>(j);
      float& to = y.pointer<float>()[at[1] + j * all.line.step[1]];
      y.put(to, r.result(folded[k], shift[k]));
    }
  });
}

template <class Op, Reduction kKind>
void forward(const typename Op::Forward& c) {
  if (c.x.numel() == 0) return plain_loops<float>(c);
  const ReduceLayout<2> all(c.x.shape, {c.x.strides, ops::broadcast_strides(c.y, c.x.shape)},
                            ops::own_axes(c.y, c.x.shape), 1);
  const Recipe recipe{kKind, {all.group.size, c.correction}};
  if (all.lie == Lie::neither) return plain_loops<float>(c);
  if (all.lie == Lie::rows)
    reduce_rows(recipe, all, c.x, c.y);
  else
    reduce_lines(recipe, all, c.x, c.y);
}

template <class Op, Reduction kKind>
void add_forward() {
  kernels<typename Op::Forward>[kCPU.kind][static_cast<size_t>(DType::f32)] = forward<Op, kKind>;
}

}  // namespace

void register_reductions() {
  add_forward<ops::Sum, Reduction::sum>();
  add_forward<ops::Mean, Reduction::mean>();
  add_forward<ops::AMax, Reduction::amax>();
  add_forward<ops::AMin, Reduction::amin>();
  add_forward<ops::Norm, Reduction::norm>();
  add_forward<ops::LogSumExp, Reduction::logsumexp>();
  add_forward<ops::Var, Reduction::var>();
}

}  // namespace tally::cpu
