#include <array>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/adamw_update.h"
#include "core/ops/clip.h"
#include "core/parallel.h"

namespace tally::cpu {

void adamw_options(const ops::AdamWUpdate::Call& call);  // updates.cpp

namespace {

void adamw_update(const ops::AdamWUpdate::Call& c) {
  const bool plain = c.attrs.decoupled && !c.largest.defined();  // no L2, no AMSGrad
  if (!plain) return adamw_options(c);
  if (!c.w.is_dense() || !c.dw.is_dense() || !c.m.is_dense() || !c.v.is_dense())
    return plain_loops<float>(c);
  const float scale = c.scale.defined() ? c.scale.at<float>(0) : 1.0f;
  const AdamWScalars s{static_cast<float>(c.keep),      static_cast<float>(c.beta2),
                       static_cast<float>(c.rate1),     static_cast<float>(c.rate2),
                       static_cast<float>(c.step_size), static_cast<float>(c.root_correction),
                       static_cast<float>(c.eps),       scale};
  parallel_for(c.w.numel(), 1 << 15, [&](int64_t i, int64_t end) {
    isa().adamw(end - i, c.dw.pointer<float>() + i, c.w.pointer<float>() + i,
                c.m.pointer<float>() + i, c.v.pointer<float>() + i, s);
  });
}

// At most 64 pieces, cut by the size alone; their sums are added in order.
void square_sum(const ops::SquareSum::Call& c) {
  if (!c.x.is_dense()) return plain_loops<float>(c);
  constexpr int64_t kPieces = 64;
  const int64_t n = c.x.numel(), piece = std::max<int64_t>(1 << 15, (n + kPieces - 1) / kPieces);
  std::array<double, kPieces> sums{};
  parallel_for(n, piece, [&](int64_t i, int64_t end) {
    sums[static_cast<size_t>(i / piece)] = isa().square_sum_f64(end - i, c.x.pointer<float>() + i);
  });
  double total = 0;
  for (double s : sums) total += s;
  c.sum.at<double>(0) += total;
}

}  // namespace

void register_optimizers() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ops::AdamWUpdate::Call>[kCPU.kind][f32] = adamw_update;
  kernels<ops::SquareSum::Call>[kCPU.kind][f32] = square_sum;
  kernels<ops::ClipFactor::Call>[kCPU.kind][f32] = [](const ops::ClipFactor::Call& c) {
    c.reference<float>();  // two numbers: nothing to share out
  };
}

}  // namespace tally::cpu
