#pragma once
#include <optional>

#include "core/ops/cap.h"

namespace tally::ops {

enum class Reduction : uint8_t { mean, sum, none };

/// What the cross-entropy losses share.
struct LossOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;     ///< targets with this value count for nothing
  double label_smoothing = 0;      ///< share of the target spread evenly over all classes
  double z_loss = 0;               ///< alpha of the term alpha log^2 Z; PaLM: 1e-4
  double max_z_loss = 0;           ///< beta of the term beta max_j x_j^2; Baichuan 2: 2e-4
  std::optional<double> soft_cap;  ///< logits become cap tanh(x / cap)
  /// What the mean divides by, in place of this call's own targets: with gradient accumulation the
  /// targets of all micro-batches, so that their losses and gradients add up to the exact mean.
  std::optional<double> normalizer;
};

/// Error by name for an option without a meaning.
inline void check_options(const char* op, const LossOptions& o) {
  const double cap = o.soft_cap.value_or(1), count = o.normalizer.value_or(1);
  check(o.label_smoothing >= 0 && o.label_smoothing <= 1, op,
        ": label_smoothing must be in 0..1; got ", o.label_smoothing, in_module());
  check(o.z_loss >= 0 && std::isfinite(o.z_loss), op,
        ": z_loss must be a finite number, 0 or more; got ", o.z_loss, in_module());
  check(o.max_z_loss >= 0 && std::isfinite(o.max_z_loss), op,
        ": max_z_loss must be a finite number, 0 or more; got ", o.max_z_loss, in_module());
  check_cap(op, "soft_cap", cap);
  check(std::isfinite(count) && count > 0, op, ": normalizer must be a finite number above 0; got ",
        count, in_module(), "; it is the number of targets that the mean is over");
  check(!o.normalizer || o.reduction == Reduction::mean, op, ": a normalizer is for the mean only",
        in_module());
}

/// Error unless targets are i64, one for each row, each a class 0..classes-1 or the ignored value;
/// names the first other one by its position. Looks at host memory only: on meta there are no
/// values.
inline void check_targets(const char* op, const Tensor& targets, const Shape& rows, int64_t classes,
                          int64_t ignored) {
  check_defined(op, "targets", targets);
  check(targets.dtype() == DType::i64, op, ": targets must be i64; got ", targets.dtype(),
        in_module());
  check(targets.shape() == rows, op, ": needs one target a row, ", rows, "; got ", targets.shape(),
        in_module());
  const In v = targets;
  if (!backend(targets.device()).host_memory() || v.numel() == 0) return;
  check(v.is_rows(), op, ": rows of targets must be dense and evenly spaced; got ", v.shape,
        " with strides ", v.strides, in_module(), "; call contiguous(targets) first");
  for (int64_t i = 0; i < v.numel(); ++i) {
    const int64_t target = v.row<int64_t>(i / v.cols())[i % v.cols()];
    if ((target >= 0 && target < classes) || target == ignored) continue;
    fail(op, ": targets must be classes 0..", classes - 1, " or the ignored ", ignored,
         "; position ", i, " of ", rows, " holds ", target, in_module());
  }
}

/// The loss of one row of n logits x, and its gradient:
///   log Z        = log sum_j exp(x_j), the maximum taken out before exp;   nll = log Z - x_y
///   loss         = (1-e) nll + e (log Z - mean_j x_j) + alpha log^2 Z + beta x_m^2
///   d loss/d x_j = (1 + 2 alpha log Z) p_j - (1-e) [j = y] - e/n + 2 beta x_m [j = m],
///                  p_j = exp(x_j - log Z),   m: the first of the largest logits
/// where x is capped first if there is a cap, whose slope 1 - tanh^2 then multiplies the gradient.
struct LossRow {
  int64_t ignored = -100;
  double smoothing = 0, z_loss = 0, max_z_loss = 0, cap = 0;  // cap 0: none

  explicit LossRow(const LossOptions& o)
      : ignored(o.ignore_index),
        smoothing(o.label_smoothing),
        z_loss(o.z_loss),
        max_z_loss(o.max_z_loss),
        cap(o.soft_cap.value_or(0)) {}

  template <class A>
  struct Value {
    A log_z, nll, loss;
  };
  double value_flops(double n) const {
    return n * (3 + capped() + smooth()) + 2 * capped() + 4 + 5 * smooth() + 3 * with_z() +
           3 * with_max_z();
  }
  template <class A, class X>
  Value<A> value(const X* x, int64_t n, int64_t target) const {
    A top(-INFINITY), sum(0), total(0);
    for (int64_t j = 0; j < n; ++j) top = larger(top, A(x[j]));
    top = bent(top);
    for (int64_t j = 0; j < n; ++j) {
      const A u = bent(A(x[j]));
      sum += exp(u - top);
      if (smoothing > 0) total += u;
    }
    // Not log Z - x_y: a likely target's loss is small, and log Z rounded at the size of the
    // logits.
    const A excess = log(sum);
    Value<A> v{top + excess, excess - (bent(A(x[target])) - top), A(0)};
    v.loss = v.nll;
    if (smoothing > 0) v.loss = A(1 - smoothing) * v.nll + A(smoothing) * (v.log_z - total / A(n));
    if (z_loss > 0) v.loss += A(z_loss) * (v.log_z * v.log_z);
    if (max_z_loss > 0) v.loss += A(max_z_loss) * (top * top);
    return v;
  }
  double gradient_flops(double n) const {
    return n * (3 + 2 * capped() + smooth()) + 1 + 2 * smooth() + 3 * with_z() + 3 * with_max_z();
  }
  /// Calls put(j, g d loss / d x_j) for each j in order; put may write to x[j].
  template <class A, class X, class Put>
  void gradient(const X* x, int64_t n, int64_t target, const A& log_z, const A& g,
                Put&& put) const {
    const A all = z_loss > 0 ? g * (A(1) + A(2 * z_loss) * log_z) : g;
    const A hit = smoothing > 0 ? g * A(1 - smoothing) : g;
    const A rest = smoothing > 0 ? g * A(smoothing / static_cast<double>(n)) : A(0);
    const int64_t top = max_z_loss > 0 ? largest<A>(x, n) : -1;
    const A pull = max_z_loss > 0 ? g * A(2 * max_z_loss) : A(0);
    for (int64_t j = 0; j < n; ++j) {
      A u(x[j]), bend(0);
      if (cap > 0) {
        bend = tanh(u / A(cap));
        u = A(cap) * bend;
      }
      A d = all * exp(u - log_z);
      if (smoothing > 0) d -= rest;
      if (j == target) d -= hit;
      if (j == top) d += pull * u;
      if (cap > 0) d = d * (A(1) - bend * bend);
      put(j, d);
    }
  }

 private:
  template <class A>
  A bent(const A& x) const {
    return cap > 0 ? A(cap) * tanh(x / A(cap)) : x;
  }
  // The first of the largest: comparing only, no operation is counted.
  template <class A, class X>
  static int64_t largest(const X* x, int64_t n) {
    int64_t top = 0;
    for (int64_t j = 1; j < n; ++j) top = A(x[top]) < A(x[j]) ? j : top;
    return top;
  }
  double capped() const { return cap > 0 ? 3 : 0; }
  double smooth() const { return smoothing > 0 ? 1 : 0; }
  double with_z() const { return z_loss > 0 ? 1 : 0; }
  double with_max_z() const { return max_z_loss > 0 ? 1 : 0; }
};

/// What a loss adds up over the rows that count: the second output of the losses, (4) numbers.
struct LossStats {
  static constexpr int64_t kCount = 0;        // targets that are not ignored
  static constexpr int64_t kNll = 1;          // sum of -log p of the targets
  static constexpr int64_t kLogZ = 2;         // sum of log Z
  static constexpr int64_t kLogZSquared = 3;  // sum of log^2 Z
  static constexpr int64_t kSize = 4;
};
/// The same while the loops add up.
template <class A>
struct LossTotals {
  A loss = A(0), nll = A(0), log_z = A(0), log_z_squared = A(0);
  int64_t count = 0;
  static constexpr double kFlopsPerRow = 4;  // and one more where losses are added up
  void add(const LossRow::Value<A>& v) {
    ++count;
    nll += v.nll;
    log_z += v.log_z;
    log_z_squared += v.log_z * v.log_z;
  }
  void put(const Out& stats) const {
    stats.at<A>(LossStats::kCount) = A(count);
    stats.at<A>(LossStats::kNll) = nll;
    stats.at<A>(LossStats::kLogZ) = log_z;
    stats.at<A>(LossStats::kLogZSquared) = log_z_squared;
  }
};

}  // namespace tally::ops
