#include <cstring>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/narrow.h"
#include "backends/cpu/norm_args.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/layer_norm.h"
#include "core/ops/rms_norm.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

void forward(NormForward a) {
  parallel_for(a.rows, rows_of_piece(a.cols), [&](int64_t begin, int64_t end) {
    NormForward part = a;
    part.rows = end - begin;
    part.x += begin * a.x_stride;
    part.y += begin * a.y_stride;
    if (a.mean) part.mean += begin;
    part.r += begin;
    isa().norm_forward(part);
  });
}

// dw and db: each piece of rows sums into its own line of `sums`, the lines are added in order.
void backward(const NormBackward& a, float* sums, const Out& dw, const Out& db) {
  const int64_t piece = (a.rows + ops::kNormPieces - 1) / ops::kNormPieces,
                lines = (dw.defined() ? 1 : 0) + (db.defined() ? 1 : 0);
  std::memset(sums, 0, static_cast<size_t>(ops::kNormPieces * lines * a.cols) * sizeof(float));
  float* db_sums = sums + (dw.defined() ? ops::kNormPieces * a.cols : 0);
  parallel_for(a.rows, std::max<int64_t>(piece, 1), [&](int64_t begin, int64_t end) {
    const int64_t line = begin / piece;
    NormBackward part = a;
    part.rows = end - begin;
    part.dy += begin * a.dy_stride;
    part.x += begin * a.x_stride;
    if (a.mean) part.mean += begin;
    if (a.r) part.r += begin;
    if (a.dx) part.dx += begin * a.dx_stride;
    part.dw = dw.defined() ? sums + line * a.cols : nullptr;
    part.db = db.defined() ? db_sums + line * a.cols : nullptr;
    isa().norm_backward(part);
  });
  if (dw.defined())
    isa().column_sums(ops::kNormPieces, a.cols, sums, a.cols, dw.pointer<float>(), dw.accumulate);
  if (db.defined())
    isa().column_sums(ops::kNormPieces, a.cols, db_sums, a.cols, db.pointer<float>(),
                      db.accumulate);
}

void rms_norm_forward(const ops::RMSNorm::Forward& c) {
  forward({c.x.rows(), c.x.cols(), c.x.row<float>(0), c.x.row_stride, c.w.row<float>(0), nullptr,
           c.y.row<float>(0), c.y.row_stride, nullptr, c.r.pointer<float>(),
           static_cast<float>(c.eps), c.unit_offset ? 1.0f : 0.0f, c.y.accumulate});
}

// Widened numbers are not rounded before the gain.
void rms_norm_half(const ops::RMSNorm::Forward& c) {
  c.round_before_weight ? plain_loops<bf16>(c) : through_f32(c);
}

void rms_norm_backward(const ops::RMSNorm::Backward& c) {
  backward({c.x.rows(), c.x.cols(), c.dy.row<float>(0), c.dy.row_stride, c.x.row<float>(0),
            c.x.row_stride, c.w.row<float>(0), nullptr, c.r.row<float>(0), c.dx.row<float>(0),
            c.dx.row_stride, nullptr, nullptr, c.unit_offset ? 1.0f : 0.0f, c.dx.accumulate},
           reinterpret_cast<float*>(c.scratch), c.dw, {});
}

void layer_norm_forward(const ops::LayerNorm::Forward& c) {
  forward({c.x.rows(), c.x.cols(), c.x.row<float>(0), c.x.row_stride, c.w.row<float>(0),
           c.b.row<float>(0), c.y.row<float>(0), c.y.row_stride, c.m.pointer<float>(),
           c.r.pointer<float>(), static_cast<float>(c.eps), c.unit_offset ? 1.0f : 0.0f,
           c.y.accumulate});
}

void layer_norm_backward(const ops::LayerNorm::Backward& c) {
  backward(
      {c.x.rows(), c.x.cols(), c.dy.row<float>(0), c.dy.row_stride, c.x.row<float>(0),
       c.x.row_stride, c.w.row<float>(0), c.m.row<float>(0), c.r.row<float>(0), c.dx.row<float>(0),
       c.dx.row_stride, nullptr, nullptr, c.unit_offset ? 1.0f : 0.0f, c.dx.accumulate},
      reinterpret_cast<float*>(c.scratch), c.dw, c.db);
}

}  // namespace

void register_norms() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ops::RMSNorm::Forward>[kCPU.kind][f32] = rms_norm_forward;
  kernels<ops::RMSNorm::Forward>[kCPU.kind][static_cast<size_t>(DType::bf16)] = rms_norm_half;
  kernels<ops::RMSNorm::Backward>[kCPU.kind][f32] = rms_norm_backward;
  kernels<ops::LayerNorm::Forward>[kCPU.kind][f32] = layer_norm_forward;
  kernels<ops::LayerNorm::Backward>[kCPU.kind][f32] = layer_norm_backward;
}

}  // namespace tally::cpu
