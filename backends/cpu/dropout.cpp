#include "core/ops/dropout.h"

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

// Dense operands are one long row.
void dropout(const ops::Dropout::Call& c) {
  const auto dense = [](const View& v) { return !v.defined() || v.is_dense(); };
  const bool flat = dense(c.x) && dense(c.residual) && dense(c.y);
  const int64_t cols = flat ? c.x.numel() : c.x.cols(), rows = flat ? 1 : c.x.rows();
  constexpr int64_t kPiece = 1 << 13;
  const int64_t pieces = (cols + kPiece - 1) / kPiece;
  const auto threshold = static_cast<uint64_t>(std::llround(c.attrs.p * 0x1p32));
  parallel_for(rows * pieces, rows_of_piece(std::min(cols, kPiece)), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t row = i / pieces, first = i % pieces * kPiece;
      isa().dropout({std::min(kPiece, cols - first), c.x.row<float>(row) + first,
                     c.residual.defined() ? c.residual.row<float>(row) + first : nullptr,
                     c.y.row<float>(row) + first, c.attrs.seed, c.attrs.stream,
                     static_cast<uint64_t>(row * cols + first), threshold,
                     static_cast<float>(c.attrs.factor()), c.y.accumulate});
    }
  });
}

}  // namespace

void register_dropout() {
  kernels<ops::Dropout::Call>[kCPU.kind][static_cast<size_t>(DType::f32)] = dropout;
}

}  // namespace tally::cpu
