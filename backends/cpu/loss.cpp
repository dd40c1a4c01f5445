#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "core/ops/linear_cross_entropy.h"
#include "core/ops/rope.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using HeadLoss = ops::LinearCrossEntropy::Forward;
using Totals = ops::LossTotals<float>;

int64_t target_of(const In& targets, int64_t n) {
  return targets.pointer<int64_t>()[n / targets.cols() * targets.row_stride + n % targets.cols()];
}

/// One row: its loss is added up, its logits become their gradient (times g) where one is wanted.
void loss_row(const ops::LossRow& rule, float* x, int64_t n, int64_t target, bool gradient, float g, Totals& totals) {
  if (target == rule.ignored) {
    if (gradient) std::memset(x, 0, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  if (rule.cap > 0 || rule.smoothing > 0) {  // rare: the loops of the definition
    const auto v = rule.value<float>(x, n, target);
    totals.add(v);
    totals.loss += v.loss;
    if (gradient) rule.gradient(x, n, target, v.log_z, g, [&](int64_t j, float e) { x[j] = e; });
    return;
  }
  const float top = isa().row_max(n, x), log_z = top + std::log(isa().exp_sum(n, x, top)), z = static_cast<float>(rule.z_loss);
  ops::LossRow::Value<float> v{log_z, log_z - x[target], 0};
  v.loss = v.nll + (z > 0 ? z * (log_z * log_z) : 0.0f);
  totals.add(v);
  totals.loss += v.loss;
  if (!gradient) return;
  isa().scaled_softmax(n, x, log_z, z > 0 ? g * (1 + 2 * z * log_z) : g);
  x[target] -= g;
}

/// Rows [first, last) of logits in `x`: at most 64 pieces, whose sums are added in order.
void loss_rows(const HeadLoss& c, float* x, int64_t first, int64_t last, float g, Totals& totals) {
  constexpr int64_t kPieces = 64;
  const int64_t classes = c.w.rows(), rows = last - first, piece = (rows + kPieces - 1) / kPieces;
  std::array<Totals, kPieces> sums{};
  parallel_for(rows, std::max<int64_t>(piece, 1), [&](int64_t begin, int64_t end) {
    Totals& sum = sums[static_cast<size_t>(begin / piece)];
    for (int64_t i = begin; i < end; ++i) {
      loss_row(c.rule, x + i * classes, classes, target_of(c.targets, first + i), c.gh.defined(), g, sum);
    }
  });
  for (const Totals& s : sums) {
    totals.loss += s.loss, totals.nll += s.nll, totals.log_z += s.log_z;
    totals.log_z_squared += s.log_z_squared, totals.count += s.count;
  }
}

void head_loss(const HeadLoss& c) {
  const int64_t rows = c.rows(), classes = c.w.rows(), width = c.w.cols();
  int64_t count = 0;
  for (int64_t n = 0; n < rows; ++n) count += target_of(c.targets, n) != c.rule.ignored;
  const float divisor = static_cast<float>(c.normalizer > 0 ? c.normalizer : static_cast<double>(count));
  const bool divides = c.divides() && count > 0;
  const float g = divides ? 1 / divisor : 1.0f;
  float* x = reinterpret_cast<float*>(c.scratch);
  Totals totals;
  if (rows == 0 && c.gw.defined()) std::memset(c.gw.data, 0, static_cast<size_t>(c.gw.numel()) * sizeof(float));
  for (int64_t first = 0; first < rows; first += c.block()) {
    const int64_t last = std::min(rows, first + c.block()), n = last - first;
    const float *h = c.h.row<float>(first), *w = c.w.pointer<float>();
    gemm(false, true, n, classes, width, h, c.h.row_stride, w, c.w.row_stride, 0.0f, x, classes);
    loss_rows(c, x, first, last, g, totals);
    if (c.gh.defined()) gemm(false, false, n, width, classes, x, classes, w, c.w.row_stride, 0.0f, c.gh.row<float>(first), c.gh.row_stride);
    if (c.gw.defined()) gemm(true, false, classes, width, n, x, classes, h, c.h.row_stride, first > 0 ? 1.0f : 0.0f, c.gw.pointer<float>(), c.gw.row_stride);
  }
  totals.put(c.stats);
  c.loss.at<float>(0) = divides ? totals.loss / divisor : totals.loss;
  recorder().provider = gemm_provider_name();
}

void scale_rows(const In& from, const Out& to, float g) {
  if (!to.defined()) return;
  parallel_for(to.rows(), std::max<int64_t>(1, 32768 / std::max<int64_t>(to.cols(), 1)), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) isa().scale(to.cols(), g, from.row<float>(i), to.row<float>(i), to.accumulate);
  });
}

void head_loss_backward(const ops::LinearCrossEntropy::Backward& c) {
  const float g = c.dy.at<float>(0);
  scale_rows(c.gh, c.dh, g);
  scale_rows(c.gw, c.dw, g);
}

/// Heads whose elements lie side by side, turned in halves; other layouts take the loops of the definition.
template <class Turn>
void rope(const Turn& c) {
  const int64_t heads = c.x.shape[2], width = c.x.shape[3], rotary = c.table.cols();
  const bool side_by_side = c.x.strides[3] == 1 && c.y.strides[3] == 1;
  if (c.attrs.pairs != ops::RotaryPairs::half_split || !side_by_side) {
    recorder().provider = "plain loops";
    return c.template reference<float>();
  }
  const float sign = std::is_same_v<Turn, ops::Rope::Backward> ? -1.0f : 1.0f;
  const int64_t tokens = c.x.shape[1];
  parallel_for(c.x.shape[0] * tokens, std::max<int64_t>(1, 8192 / std::max<int64_t>(heads * width, 1)), [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) {
      const int64_t b = n / tokens, t = n % tokens;
      const float* row = c.table.template row<float>(c.positions.defined() ? c.positions.template pointer<int64_t>()[n] : c.attrs.offset + t);
      for (int64_t h = 0; h < heads; ++h) {
        const float* x = c.x.template pointer<float>() + b * c.x.strides[0] + t * c.x.strides[1] + h * c.x.strides[2];
        float* y = c.y.template pointer<float>() + b * c.y.strides[0] + t * c.y.strides[1] + h * c.y.strides[2];
        isa().turn_halves(rotary / 2, x, row, sign, y, c.y.accumulate);
        if (rotary < width && (x != y || c.y.accumulate)) isa().scale(width - rotary, 1.0f, x + rotary, y + rotary, c.y.accumulate);
      }
    }
  });
}

}  // namespace

void register_losses() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<HeadLoss>[kCPU.kind][f32] = head_loss;
  kernels<ops::LinearCrossEntropy::Backward>[kCPU.kind][f32] = head_loss_backward;
  kernels<ops::Rope::Forward>[kCPU.kind][f32] = rope<ops::Rope::Forward>;
  kernels<ops::Rope::Backward>[kCPU.kind][f32] = rope<ops::Rope::Backward>;
}

}  // namespace tally::cpu
