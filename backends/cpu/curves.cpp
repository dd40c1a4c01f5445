// Activations whose parameters are learned, and the soft cap: rows are shared out, and what each
// piece of rows gives to a parameter is added in their order.
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "backends/cpu/reduce.h"
#include "core/ops/learned_swish.h"
#include "core/ops/soft_cap.h"
#include "core/ops/xielu.h"

namespace tally::cpu {
namespace {

/// Calls f(piece, row) for all rows, cut into pieces.
template <class F>
void in_pieces(const Cut& cut, int64_t rows, F&& f) {
  parallel_for(rows, cut.piece, [&](int64_t i, int64_t end) {
    for (const int64_t piece = i / cut.piece; i < end; ++i) f(piece, i);
  });
}
Cut cut_of(const View& v) { return {v.rows(), rows_of_piece(v.cols())}; }
float* row_or_null(const Out& v, int64_t i) { return v.defined() ? v.row<float>(i) : nullptr; }

void soft_cap_forward(const ops::SoftCap::Forward& c) {
  in_pieces(cut_of(c.x), c.x.rows(), [&](int64_t, int64_t i) {
    isa().soft_cap(c.x.cols(), static_cast<float>(c.cap), nullptr, c.x.row<float>(i),
                   c.y.row<float>(i), c.y.accumulate);
  });
}
void soft_cap_backward(const ops::SoftCap::Backward& c) {
  in_pieces(cut_of(c.x), c.x.rows(), [&](int64_t, int64_t i) {
    isa().soft_cap(c.x.cols(), static_cast<float>(c.cap), c.dy.row<float>(i), c.x.row<float>(i),
                   c.dx.row<float>(i), c.dx.accumulate);
  });
}

int64_t step_of(const In& beta) { return beta.is_scalar ? 0 : 1; }

void learned_swish_forward(const ops::LearnedSwish::Forward& c) {
  in_pieces(cut_of(c.x), c.x.rows(), [&](int64_t, int64_t i) {
    isa().learned_swish({c.x.cols(), nullptr, c.x.row<float>(i), c.beta.pointer<float>(),
                         step_of(c.beta), c.y.row<float>(i), nullptr, c.y.accumulate});
  });
}
// One row of sums for each piece of rows, a number for each channel.
void learned_swish_backward(const ops::LearnedSwish::Backward& c) {
  const int64_t d = c.x.cols();
  const Cut cut = cut_of(c.x);
  float* sums = reinterpret_cast<float*>(thread_scratch().data());
  const bool fits = cut.count * d <= static_cast<int64_t>(kThreadScratchBytes / sizeof(float));
  if (!fits || c.x.numel() == 0) return plain_loops<float>(c);
  if (c.db.defined()) std::fill(sums, sums + cut.count * d, 0.0f);
  in_pieces(cut, c.x.rows(), [&](int64_t piece, int64_t i) {
    isa().learned_swish({d, c.dy.row<float>(i), c.x.row<float>(i), c.beta.pointer<float>(),
                         step_of(c.beta), row_or_null(c.dx, i),
                         c.db.defined() ? sums + piece * d : nullptr, c.dx.accumulate});
  });
  if (!c.db.defined()) return;
  for (int64_t k = 1; k < cut.count; ++k) isa().add(d, sums, sums + k * d, sums, false);
  const bool one = step_of(c.beta) == 0;
  if (one) sums[0] = isa().fold_row(Fold::sum, d, sums, 0);
  for (int64_t i = 0; i < (one ? 1 : d); ++i) c.db.put(c.db.at<float>(i), sums[i]);
}

XieluRow xielu_row(const In& x, const In& p, const In& n, const ops::Xielu::Attrs& a, int64_t i) {
  return {x.cols(),
          nullptr,
          x.row<float>(i),
          p.at<float>(0),
          n.at<float>(0),
          static_cast<float>(a.b),
          static_cast<float>(a.eps),
          nullptr,
          false};
}
void xielu_forward(const ops::Xielu::Forward& c) {
  in_pieces(cut_of(c.x), c.x.rows(), [&](int64_t, int64_t i) {
    XieluRow row = xielu_row(c.x, c.p, c.n, c.a, i);
    row.y = c.y.row<float>(i);
    row.add = c.y.accumulate;
    isa().xielu(row);
  });
}
void xielu_backward(const ops::Xielu::Backward& c) {
  const Cut cut = cut_of(c.x);
  std::array<XieluSums, kFoldParts> parts{};
  in_pieces(cut, c.x.rows(), [&](int64_t piece, int64_t i) {
    XieluRow row = xielu_row(c.x, c.p, c.n, c.a, i);
    row.dy = c.dy.row<float>(i);
    row.y = row_or_null(c.dx, i);
    row.add = c.dx.accumulate;
    const XieluSums sums = isa().xielu(row);
    parts[static_cast<size_t>(piece)].p += sums.p;
    parts[static_cast<size_t>(piece)].n += sums.n;
  });
  XieluSums all{};
  for (const XieluSums& part : parts) all = {all.p + part.p, all.n + part.n};
  if (c.dp.defined()) c.dp.put(c.dp.at<float>(0), all.p);
  if (c.dn.defined()) c.dn.put(c.dn.at<float>(0), all.n);
}

}  // namespace

void register_curves() {
  constexpr auto f32 = static_cast<size_t>(DType::f32);
  kernels<ops::SoftCap::Forward>[kCPU.kind][f32] = soft_cap_forward;
  kernels<ops::SoftCap::Backward>[kCPU.kind][f32] = soft_cap_backward;
  kernels<ops::LearnedSwish::Forward>[kCPU.kind][f32] = learned_swish_forward;
  kernels<ops::LearnedSwish::Backward>[kCPU.kind][f32] = learned_swish_backward;
  kernels<ops::Xielu::Forward>[kCPU.kind][f32] = xielu_forward;
  kernels<ops::Xielu::Backward>[kCPU.kind][f32] = xielu_backward;
}

}  // namespace tally::cpu
