#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/residual_add.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using ops::ResidualAdd;

/// Memory is all that these loops wait for: plain ones, which the compiler makes vectors of.
void residual_add_forward(const ResidualAdd::Forward& c) {
  const int64_t n = c.x.cols();
  const bool row_gain = c.gain.defined() && !c.gain.is_scalar;
  const float all = c.gain.defined() && c.gain.is_scalar ? c.gain.at<float>(0) : 1.0f;
  parallel_for(c.x.rows(), rows_of_piece(n), [&](int64_t begin, int64_t end) {
    ResidualAdd::Factors factors(c.attrs, c.x.rows(), ResidualAdd::sequences(c.x));
    for (int64_t i = begin; i < end; ++i) {
      const double factor = factors.at(i);
      const float f = static_cast<float>(factor) * all;
      const bool kept = factor != 0;
      const float *from = c.residual.row<float>(i), *x = c.x.row<float>(i),
                  *g = row_gain ? c.gain.pointer<float>() : nullptr;
      float* y = c.y.row<float>(i);
      for (int64_t d = 0; d < n; ++d) {
        const float branch = g ? x[d] * f * g[d] : x[d] * f;
        c.y.put(y[d], from[d] + (kept ? branch : 0.0f));
      }
    }
  });
}

void residual_add_backward(const ResidualAdd::Backward& c) {
  const int64_t rows = c.dy.rows(), n = c.dy.cols(), width = c.dgain.numel();
  const bool row_gain = c.gain.defined() && !c.gain.is_scalar;
  const float all = c.gain.defined() && c.gain.is_scalar ? c.gain.at<float>(0) : 1.0f;
  const int64_t piece = std::max<int64_t>((rows + c.kPieces - 1) / c.kPieces, 1);
  float* sums = reinterpret_cast<float*>(c.scratch);
  if (width > 0) std::memset(sums, 0, static_cast<size_t>(c.kPieces * width) * sizeof(float));
  parallel_for(rows, piece, [&](int64_t begin, int64_t end) {
    ResidualAdd::Factors factors(c.attrs, rows, ResidualAdd::sequences(c.dy));
    float* sum = sums + begin / piece * width;
    for (int64_t i = begin; i < end; ++i) {
      const float f = static_cast<float>(factors.at(i));
      const float *dy = c.dy.row<float>(i), *g = row_gain ? c.gain.pointer<float>() : nullptr;
      for (int64_t d = 0; d < (c.dx.defined() ? n : 0); ++d)
        c.dx.put(c.dx.row<float>(i)[d], dy[d] * f * (g ? g[d] : all));
      if (width == 0 || f == 0) continue;
      const float* x = c.x.row<float>(i);
      float whole = 0;
      for (int64_t d = 0; d < n; ++d) (row_gain ? sum[d] : whole) += dy[d] * f * x[d];
      if (!row_gain) sum[0] += whole;
    }
  });
  for (int64_t d = 0; d < width; ++d) {
    float total = 0;
    for (int64_t k = 0; k < c.kPieces; ++k) total += sums[k * width + d];
    c.dgain.put(c.dgain.at<float>(d), total);
  }
}

}  // namespace

void register_residual() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ResidualAdd::Forward>[kCPU.kind][f32] = residual_add_forward;
  kernels<ResidualAdd::Backward>[kCPU.kind][f32] = residual_add_backward;
}

}  // namespace tally::cpu
