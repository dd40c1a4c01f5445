#include <cstring>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/accumulate.h"
#include "core/ops/embedding.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

constexpr int64_t kPiece = 1 << 15;  // elements: 128 kB of each operand

void accumulate(const ops::Accumulate::Call& c) {
  if (!c.x.is_dense() || !c.sum.is_dense()) return plain_loops<float>(c);
  const float* x = c.x.pointer<float>();
  float* sum = c.sum.pointer<float>();
  parallel_for(c.x.numel(), kPiece,
               [&](int64_t i, int64_t end) { isa().add(end - i, x + i, sum + i, sum + i, false); });
}

void accumulate_sum(const ops::Accumulate::Sum& c) {
  if (!c.x.is_dense() || !c.y.is_dense() || !c.sum.is_dense()) return plain_loops<float>(c);
  const float *x = c.x.pointer<float>(), *y = c.y.pointer<float>();
  float* sum = c.sum.pointer<float>();
  parallel_for(c.x.numel(), kPiece, [&](int64_t i, int64_t end) {
    isa().add(end - i, x + i, y + i, sum + i, c.sum.accumulate);
  });
}

int64_t id_at(const In& ids, int64_t n) {
  return ids.pointer<int64_t>()[n / ids.cols() * ids.row_stride + n % ids.cols()];
}

void embedding_forward(const ops::Embedding::Forward& c) {
  const int64_t d = c.w.cols();
  parallel_for(c.ids.numel(), std::max<int64_t>(1, kPiece / std::max<int64_t>(d, 1)),
               [&](int64_t first, int64_t last) {
                 for (int64_t n = first; n < last; ++n) {
                   isa().scale(d, static_cast<float>(c.scale), c.w.row<float>(id_at(c.ids, n)),
                               c.y.row<float>(n), c.y.accumulate);
                 }
               });
}

// bf16: the rows that are asked for, never the whole table.
void embedding_half(const ops::Embedding::Forward& c) {
  const int64_t d = c.w.cols();
  if (d > static_cast<int64_t>(kThreadScratchBytes / sizeof(float))) return plain_loops<bf16>(c);
  parallel_for(c.ids.numel(), std::max<int64_t>(1, kPiece / std::max<int64_t>(d, 1)),
               [&](int64_t first, int64_t last) {
                 float* row = reinterpret_cast<float*>(thread_scratch().data());
                 for (int64_t n = first; n < last; ++n) {
                   isa().widen(d, c.w.row<uint16_t>(id_at(c.ids, n)), row);
                   isa().scale(d, static_cast<float>(c.scale), row, row, false);
                   isa().narrow(d, row, c.y.row<uint16_t>(n), c.y.accumulate);
                 }
               });
}

// The lists of who asked for which row are made on one thread; then the rows of dw are shared out,
// and each adds up its own in the order of the text.
void embedding_backward(const ops::Embedding::Backward& c) {
  int64_t* first = reinterpret_cast<int64_t*>(c.scratch);
  int64_t* next = first + c.dw.rows();
  c.link(first, next, [&](int64_t n) { return id_at(c.ids, n); });
  const int64_t d = c.dw.cols();
  if (d == 0) return;
  parallel_for(c.dw.rows(), std::max<int64_t>(1, kPiece / std::max<int64_t>(d, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t v = begin; v < end; ++v) {
                   float* row = c.dw.row<float>(v);
                   if (!c.dw.accumulate)
                     std::memset(row, 0, static_cast<size_t>(d) * sizeof(float));
                   for (int64_t n = first[v]; n >= 0; n = next[n])
                     isa().scale(d, static_cast<float>(c.scale), c.dy.row<float>(n), row, true);
                 }
               });
}

}  // namespace

void register_elementwise() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32), half = static_cast<size_t>(DType::bf16);
  kernels<ops::Accumulate::Call>[kCPU.kind][f32] = accumulate;
  kernels<ops::Accumulate::Sum>[kCPU.kind][f32] = accumulate_sum;
  kernels<ops::Embedding::Forward>[kCPU.kind][f32] = embedding_forward;
  kernels<ops::Embedding::Forward>[kCPU.kind][half] = embedding_half;
  kernels<ops::Embedding::Backward>[kCPU.kind][f32] = embedding_backward;
}

}  // namespace tally::cpu
