#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/linear_cross_entropy.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using ops::CrossEntropy;
using HeadLoss = ops::LinearCrossEntropy::Forward;
using Value = ops::LossRow::Value<float>;
using Totals = ops::LossTotals<float>;

int64_t target_of(const In& targets, int64_t n) {
  return targets.pointer<int64_t>()[n / targets.cols() * targets.row_stride + n % targets.cols()];
}

Value row_value(const ops::LossRow& rule, const float* x, int64_t n, int64_t target) {
  const float cap = static_cast<float>(rule.cap), e = static_cast<float>(rule.smoothing);
  const float z = static_cast<float>(rule.z_loss);
  const LossSums sums = isa().loss_sums(n, x, cap);
  const float hit = cap > 0 ? cap * std::tanh(x[target] / cap) : x[target];
  const float excess = std::log(sums.exps);
  Value v{sums.top + excess, excess - (hit - sums.top), 0};
  v.loss = v.nll;
  if (e > 0) v.loss = (1 - e) * v.nll + e * (v.log_z - sums.all / static_cast<float>(n));
  if (z > 0) v.loss += z * (v.log_z * v.log_z);
  if (rule.max_z_loss > 0) v.loss += static_cast<float>(rule.max_z_loss) * (sums.top * sums.top);
  return v;
}

/// What the max-z loss adds to the gradient, and where.
struct Pull {
  int64_t at = 0;
  float value = 0;
};
Pull pull_of(const ops::LossRow& rule, const float* x, int64_t n, float g) {
  if (rule.max_z_loss <= 0) return {};
  const int64_t top = isa().loss_largest(n, x);
  const float cap = static_cast<float>(rule.cap);
  const float bend = cap > 0 ? std::tanh(x[top] / cap) : 0, u = cap > 0 ? cap * bend : x[top];
  return {top, g * static_cast<float>(2 * rule.max_z_loss) * u * (1 - bend * bend)};
}

/// dx = or += g d loss / d x; dx may be x.
void row_gradient(const ops::LossRow& rule, const float* x, int64_t n, int64_t target, float log_z,
                  float g, float* dx, bool add) {
  const float cap = static_cast<float>(rule.cap), e = static_cast<float>(rule.smoothing);
  const float bend = cap > 0 ? std::tanh(x[target] / cap) : 0;
  const float all = rule.z_loss > 0 ? g * (1 + static_cast<float>(2 * rule.z_loss) * log_z) : g;
  const float rest = e > 0 ? g * e / static_cast<float>(n) : 0;  // not inf * 0
  const Pull pull = pull_of(rule, x, n, g);
  isa().loss_gradient({n, x, dx, log_z, all, rest, cap, add});
  dx[target] -= g * (1 - e) * (1 - bend * bend);
  if (rule.max_z_loss > 0) dx[pull.at] += pull.value;
}

/// Calls row(i, totals) for each i < rows, shared out in at most 64 pieces whose totals are added
/// in order.
template <class Row>
Totals add_rows(int64_t rows, Row&& row) {
  constexpr int64_t kPieces = 64;
  const int64_t piece = std::max<int64_t>((rows + kPieces - 1) / kPieces, 1);
  std::array<Totals, kPieces> parts{};
  parallel_for(rows, piece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row(i, parts[static_cast<size_t>(begin / piece)]);
  });
  Totals sum;
  for (const Totals& p : parts) {
    sum.loss += p.loss, sum.nll += p.nll, sum.log_z += p.log_z;
    sum.log_z_squared += p.log_z_squared, sum.count += p.count;
  }
  return sum;
}

void cross_entropy_forward(const CrossEntropy::Forward& c) {
  Totals totals = add_rows(c.targets.numel(), [&](int64_t i, Totals& sum) {
    const int64_t y = target_of(c.targets, i);
    const bool counts = y != c.rule.ignored;
    const Value v = counts ? row_value(c.rule, c.x.row<float>(i), c.x.cols(), y) : Value{};
    c.l.at<float>(i) = v.log_z;
    if (c.reduction == ops::Reduction::none) c.loss.at<float>(i) = v.loss;
    if (!counts) return;
    sum.add(v);
    sum.loss += v.loss;
  });
  totals.put(c.stats);
  const double divisor = c.normalizer > 0 ? c.normalizer : static_cast<double>(totals.count);
  if (c.divides() && totals.count > 0) totals.loss /= static_cast<float>(divisor);
  if (c.reduction != ops::Reduction::none) c.loss.at<float>(0) = totals.loss;
}

void cross_entropy_backward(const CrossEntropy::Backward& c) {
  const int64_t rows = c.targets.numel(), n = c.x.cols();
  if (rows == 0) return;
  const float divisor = c.reads_count() ? c.stats.at<float>(ops::LossStats::kCount)
                                        : static_cast<float>(c.normalizer);
  const float shared = c.divides() && divisor > 0 ? c.dy.at<float>(0) / divisor : c.dy.at<float>(0);
  parallel_for(rows, rows_of_piece(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t y = target_of(c.targets, i);
      float* to = c.dx.row<float>(i);
      if (y == c.rule.ignored) {
        if (!c.dx.accumulate) std::memset(to, 0, static_cast<size_t>(n) * sizeof(float));
        continue;
      }
      const bool own = c.reduction == ops::Reduction::none;
      const float g = own ? c.dy.row<float>(i / c.dy.cols())[i % c.dy.cols()] : shared;
      row_gradient(c.rule, c.x.row<float>(i), n, y, c.l.at<float>(i), g, to, c.dx.accumulate);
    }
  });
}

/// Rows [first, last) of logits in `x`: their losses are added up, and they become their gradients.
Totals head_rows(const HeadLoss& c, float* x, int64_t first, int64_t last, float g) {
  const int64_t classes = c.w.rows();
  return add_rows(last - first, [&](int64_t i, Totals& sum) {
    const int64_t y = target_of(c.targets, first + i);
    float* row = x + i * classes;
    if (y == c.rule.ignored) {
      std::memset(row, 0, static_cast<size_t>(classes) * sizeof(float));
      return;
    }
    const Value v = row_value(c.rule, row, classes, y);
    sum.add(v);
    sum.loss += v.loss;
    if (c.gh.defined()) row_gradient(c.rule, row, classes, y, v.log_z, g, row, false);
  });
}

bool head_counts(const HeadLoss& c, int64_t row) {
  return target_of(c.targets, row) != c.rule.ignored;
}

/// gh of rows [first, last), whose gradients are in `x`. A row that does not count has 0 there, which
/// a NaN of w would make NaN.
void head_input_gradient(const HeadLoss& c, const float* x, int64_t first, int64_t last) {
  const int64_t classes = c.w.rows(), width = c.w.cols();
  gemm(false, false, last - first, width, classes, x, classes, c.w.pointer<float>(), leading(c.w),
       0.0f, c.gh.row<float>(first), leading(c.gh));
  for (int64_t i = first; i < last; ++i) {
    if (!head_counts(c, i))
      std::memset(c.gh.row<float>(i), 0, static_cast<size_t>(width) * sizeof(float));
  }
}

/// gw += what these rows give. One that does not count adds 0 times its numbers: it is left out where
/// these are not finite.
void head_weight_gradient(const HeadLoss& c, const float* x, int64_t first, int64_t last) {
  const int64_t classes = c.w.rows(), width = c.w.cols();
  bool written = first > 0;
  const auto add = [&](int64_t from, int64_t to) {
    if (from == to && written) return;
    gemm(true, false, classes, width, to - from, x + (from - first) * classes, classes,
         c.h.row<float>(from), leading(c.h), written ? 1.0f : 0.0f, c.gw.pointer<float>(),
         leading(c.gw));
    written = true;
  };
  int64_t from = first;
  for (int64_t i = first; i < last; ++i) {
    const float* h = c.h.row<float>(i);
    if (head_counts(c, i) || std::all_of(h, h + width, [](float v) { return std::isfinite(v); }))
      continue;
    add(from, i);
    from = i + 1;
  }
  add(from, last);
}

void head_loss(const HeadLoss& c) {
  if (!fits_gemm(c.h) || !fits_gemm(c.w)) return plain_loops<float>(c);
  const int64_t rows = c.rows(), classes = c.w.rows(), width = c.w.cols();
  int64_t count = 0;
  for (int64_t n = 0; n < rows; ++n) count += head_counts(c, n);
  const float divisor =
      static_cast<float>(c.normalizer > 0 ? c.normalizer : static_cast<double>(count));
  const bool divides = c.divides() && count > 0;
  const float g = divides ? 1 / divisor : 1.0f;
  float* x = reinterpret_cast<float*>(c.scratch);
  Totals totals;
  if (rows == 0 && c.gw.defined())
    std::memset(c.gw.data, 0, static_cast<size_t>(c.gw.numel()) * sizeof(float));
  for (int64_t first = 0; first < rows; first += c.block()) {
    const int64_t last = std::min(rows, first + c.block()), n = last - first;
    const float *h = c.h.row<float>(first), *w = c.w.pointer<float>();
    gemm(false, true, n, classes, width, h, leading(c.h), w, leading(c.w), 0.0f, x, classes);
    const Totals part = head_rows(c, x, first, last, g);
    totals.loss += part.loss, totals.nll += part.nll, totals.log_z += part.log_z;
    totals.log_z_squared += part.log_z_squared, totals.count += part.count;
    if (!c.gh.defined()) continue;
    head_input_gradient(c, x, first, last);
    head_weight_gradient(c, x, first, last);
  }
  totals.put(c.stats);
  c.loss.at<float>(0) = divides ? totals.loss / divisor : totals.loss;
  recorder().provider = gemm_provider_name();
}

void scale_rows(const In& from, const Out& to, float g) {
  if (!to.defined() || (g == 1 && from.data == to.data)) return;  // already there
  parallel_for(to.rows(), 4 * rows_of_piece(to.cols()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      isa().scale(to.cols(), g, from.row<float>(i), to.row<float>(i), to.accumulate);
    }
  });
}

void head_loss_backward(const ops::LinearCrossEntropy::Backward& c) {
  scale_rows(c.gh, c.dh, c.dy.at<float>(0));
  scale_rows(c.gw, c.dw, c.dy.at<float>(0));
}

}  // namespace

void register_losses() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<CrossEntropy::Forward>[kCPU.kind][f32] = cross_entropy_forward;
  kernels<CrossEntropy::Backward>[kCPU.kind][f32] = cross_entropy_backward;
  kernels<HeadLoss>[kCPU.kind][f32] = head_loss;
  kernels<ops::LinearCrossEntropy::Backward>[kCPU.kind][f32] = head_loss_backward;
}

}  // namespace tally::cpu
