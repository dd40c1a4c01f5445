#pragma once
#include "core/ops/loss_row.h"

namespace tally::ops {

// Cross entropy of logits, with label smoothing, z-loss, max-z loss and soft cap. Lecture claims L70, L71, L74.
// Smoothing: Szegedy et al. 2015, arXiv:1512.00567, sec. 7; z-loss: Chowdhery et al. 2022 (PaLM),
// arXiv:2204.02311, sec. 5; max-z: Baichuan 2, arXiv:2309.10305; cap: Gemma 2, arXiv:2408.00118. The row's formulas: loss_row.h.
//
//   forward    loss = sum over rows that count of loss_n, divided for the mean by their number
//              or by `normalizer`; with `none` the rows' own losses, 0 for ignored ones
//   backward   dx[n,j] = dy / divisor * d loss_n / d x[n,j];  exactly 0 for ignored rows
//
//   x, dx (..., V)   targets (...) i64   loss, dy: one number, or (...) for `none`, in the type
//   that x accumulates in   stats (4): LossStats   saved: x, targets, l = log Z (...), stats
//
// Nothing to count: the loss is 0 with a count of 0 (PyTorch's mean says NaN), and so is the
// gradient.
struct CrossEntropy {
  static constexpr const char* name = "cross_entropy";
  static constexpr size_t differentiable_outputs = 1;
  using Attrs = LossOptions;
  struct Saved {
    SavedTensor x, targets, l, stats;
    Attrs attrs;
  };

  // Rows, their targets and what the sum is divided by: for both directions.
  struct Rows {
    In x, targets;
    LossRow rule;
    Reduction reduction;
    double normalizer;  // 0: the number of targets that count
    DType dtype() const { return x.dtype; }
    double rows() const { return static_cast<double>(targets.numel()); }
    bool divides() const { return reduction == Reduction::mean && targets.numel() > 0; }
    template <class T>
    int64_t target(int64_t n) const {  // rows of targets may lie apart: the slice of a batch
      return targets.index<T>(n / targets.cols() * targets.row_stride + n % targets.cols());
    }
  };

  struct Forward : Rows {
    static constexpr const char* name = "cross_entropy.forward";
    static constexpr Kind kind = Kind::normalization;
    Out loss, l, stats;
    static constexpr const char* formula =
        "loss = mean(l - x[target] + z l^2 + b max(x)^2), l = log sum exp(x)";
    static constexpr const char* operands = "x, targets, loss, l, stats";
    auto views() const { return std::tie(x, targets, loss, l, stats); }
    Cost cost() const {
      const double sums = LossTotals<double>::kFlopsPerRow + (reduction == Reduction::none ? 0 : 1);
      return flops(rows() * (rule.value_flops(x.cols()) + sums) + (divides() ? 1 : 0)) +
             reads(x, targets) + writes(loss, l, stats);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      LossTotals<A> totals;
      for (int64_t n = 0; n < targets.numel(); ++n) {
        const int64_t y = target<T>(n);
        const bool counts = y != rule.ignored;
        const LossRow::Value<A> v =
            counts ? rule.value<A>(x.row<T>(n), x.cols(), y) : LossRow::Value<A>{};
        l.at<A>(n) = v.log_z;
        if (reduction == Reduction::none) loss.at<A>(n) = v.loss;
        if (!counts) continue;
        totals.add(v);
        if (reduction != Reduction::none) totals.loss += v.loss;
      }
      totals.put(stats);
      const double divisor = normalizer > 0 ? normalizer : static_cast<double>(totals.count);
      if (divides() && totals.count > 0) totals.loss = totals.loss / A(divisor);
      if (reduction != Reduction::none) loss.at<A>(0) = totals.loss;
    }
  };

  struct Backward : Rows {
    static constexpr const char* name = "cross_entropy.backward";
    static constexpr Kind kind = Kind::normalization;
    In dy, l, stats;
    Out dx;
    static constexpr const char* formula =
        "dx = dy (softmax(x) (1 + 2 z l) - onehot(target) + 2 b max(x) onehot(arg max)) / n";
    static constexpr const char* operands = "x, targets, dy, l, stats, dx";
    auto views() const { return std::tie(x, targets, dy, l, stats, dx); }
    bool reads_count() const { return divides() && normalizer == 0; }
    Cost cost() const {
      const double count = reads_count() ? static_cast<double>(size_of(stats.dtype)) : 0;
      return flops(rows() * rule.gradient_flops(x.cols()) + (divides() ? 1 : 0)) +
             reads(x, targets, l) + reads_if(rows() > 0, dy) + Cost{0, count, 0} + writes(dx);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const A divisor = reads_count() ? stats.at<A>(LossStats::kCount) : A(normalizer);
      A g = rows() > 0 ? dy.at<A>(0) : A(0);
      if (divides() && divisor > A(0)) g = g / divisor;
      for (int64_t n = 0; n < targets.numel(); ++n) {
        const int64_t y = target<T>(n);
        T* to = dx.row<T>(n);
        if (y == rule.ignored) {
          for (int64_t j = 0; j < x.cols(); ++j) dx.put(to[j], A(0));
          continue;
        }
        if (reduction == Reduction::none) g = dy.row<A>(n / dy.cols())[n % dy.cols()];
        rule.gradient(x.row<T>(n), x.cols(), y, l.at<A>(n), g,
                      [&](int64_t j, const A& d) { dx.put(to[j], d); });
      }
    }
  };

  /// The loss and its stats.
  static std::array<Tensor, 2> forward(const Tensor& x, const Tensor& targets, const Attrs& a,
                                       Saved* saved) {
    check_defined(name, "logits", x);
    check(x.ndim() >= 1 && is_floating(x.dtype()),
          "cross_entropy: logits must be (..., V) floating-point; got ", x.shape(), " of ",
          x.dtype(), in_module());
    check_options(name, a);
    check_targets(name, targets, x.shape().drop_last(), x.size(-1), a.ignore_index);
    const DType type = acc_dtype(x.dtype());
    Tensor loss =
        empty(a.reduction == Reduction::none ? targets.shape() : Shape{}, type, x.device());
    Tensor l = empty(targets.shape(), type, x.device()),
           stats = empty({LossStats::kSize}, type, x.device());
    run(x.device(), Forward{rows(x, targets, a), loss, l, stats});
    if (saved) *saved = {x, targets, l, stats, a};
    return {loss, stats};
  }
  static std::array<Tensor, 2> backward(const std::array<Tensor, 2>& dy, Saved&& s,
                                        const Into<2>& into = {}) {
    const GradTensor dx = into.at(0, s.x);
    if (!dx.wanted() || !dy[0].defined()) return {};
    const Tensor& l = s.l;
    check_upstream(name, dy[0], s.attrs.reduction == Reduction::none ? l.shape() : Shape{},
                   l.dtype());
    run(dy[0].device(), Backward{rows(s.x, s.targets, s.attrs), dy[0], s.l, s.stats, dx});
    s = {};
    return {dx, Tensor()};
  }

 private:
  static Rows rows(const Tensor& x, const Tensor& targets, const Attrs& a) {
    return {x, targets, LossRow(a), a.reduction, a.normalizer.value_or(0)};
  }
};

}  // namespace tally::ops
