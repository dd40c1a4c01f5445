#include "backends/cpu/linear_half.h"

#include <algorithm>

#include "backends/cpu/gemm.h"
#include "backends/cpu/gemm_bf16.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/narrow.h"
#include "backends/cpu/plain_loops.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

// A few rows, as decoding has, in f32 beside the weights as they are, as many at a time as the scratch
// holds.
void few_half(const ops::Linear::Forward& c) {
  const int64_t depth = c.w.cols(), out = c.w.rows();
  const int64_t room = static_cast<int64_t>(kThreadScratchBytes / sizeof(float));
  if (depth > room) return through_f32(c);
  const int64_t most = depth > 0 ? room / depth : c.y.rows();
  float* x = reinterpret_cast<float*>(thread_scratch().data());
  for (int64_t first = 0; first < c.y.rows(); first += most) {
    const int64_t rows = std::min(most, c.y.rows() - first);
    for (int64_t i = 0; i < rows; ++i)
      isa().widen(depth, c.x.row<uint16_t>(first + i), x + i * depth);
    parallel_for(out, few_rows_piece(out), [&](int64_t begin, int64_t end) {
      isa().few_rows_half({rows, begin, end, depth, x, depth, c.w.pointer<uint16_t>(),
                           c.w.row_stride, c.b.pointer<uint16_t>(), c.y.row<uint16_t>(first),
                           c.y.row_stride, c.y.accumulate});
    });
  }
  recorder().provider = gemm_provider_name();
}

// A product whose result, kept in f32 until it is whole, is rounded into a view once.
void product_into(const Bf16Kernels& kernels, Bf16Gemm g, const Out& out) {
  if (g.m == 0 || g.n == 0) return;
  const Scratch wide(static_cast<size_t>(g.m * g.n) * sizeof(float));
  g.c = static_cast<float*>(wide.data()), g.ldc = g.n;
  gemm_bf16(kernels, g);
  parallel_for(g.m, std::max<int64_t>((int64_t{1} << 15) / g.n, 1), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) isa().narrow(g.n, g.c + i * g.n, out.row<uint16_t>(i), out.accumulate);
  });
}

// db (+)= the sum of dy's rows, kept in f32 until it is whole.
void sum_rows(const In& dy, const Out& db) {
  const int64_t rows = dy.rows(), columns = dy.cols();
  const Scratch wide(static_cast<size_t>(rows * columns) * sizeof(float));
  const Scratch sums(static_cast<size_t>(columns) * sizeof(float));
  float *x = static_cast<float*>(wide.data()), *sum = static_cast<float*>(sums.data());
  parallel_for(columns, 64, [&](int64_t j, int64_t end) {
    for (int64_t i = 0; i < rows; ++i)
      isa().widen(end - j, dy.row<uint16_t>(i) + j, x + i * columns + j);
    isa().column_sums(rows, end - j, x + j, columns, sum + j, false);
    isa().narrow(end - j, sum + j, db.pointer<uint16_t>() + j, db.accumulate);
  });
}

const uint16_t* half(const In& x) { return x.pointer<uint16_t>(); }

// Where products of pairs can be used: the CPU has them, and matrices lie by rows.
template <class... V>
const Bf16Kernels* kernels_for(const V&... views) {
  if (gemm_provider() != GemmProvider::own || !(fits_gemm(views) && ...)) return nullptr;
  return bf16_kernels();
}

}  // namespace

void linear_half(const ops::Linear::Forward& c) {
  if (c.y.rows() <= kFewRows) return few_half(c);
  const Bf16Kernels* kernels = kernels_for(c.x, c.w, c.y);
  if (kernels == nullptr) return through_f32(c);
  const int64_t out = c.w.rows();
  const Scratch bias(static_cast<size_t>(out) * sizeof(float));
  if (c.b.defined()) isa().widen(out, half(c.b), static_cast<float*>(bias.data()));
  Bf16Gemm g{false,     true,         c.y.rows(), out,         c.w.cols(),
             half(c.x), leading(c.x), half(c.w),  leading(c.w)};
  if (c.b.defined()) g.bias = static_cast<float*>(bias.data());
  product_into(*kernels, g, c.y);
  recorder().provider = bf16_provider_name();
}

void linear_half(const ops::Linear::Backward& c) {
  const Bf16Kernels* kernels = kernels_for(c.dy, c.x, c.w, c.dx, c.dw);
  if (kernels == nullptr) return through_f32(c);
  const int64_t rows = c.dy.rows(), out = c.w.rows(), in = c.w.cols();
  if (c.dx.defined())
    product_into(*kernels,
                 {false, false, rows, in, out, half(c.dy), leading(c.dy), half(c.w), leading(c.w)},
                 c.dx);
  if (c.dw.defined())
    product_into(*kernels,
                 {true, false, out, in, rows, half(c.dy), leading(c.dy), half(c.x), leading(c.x)},
                 c.dw);
  if (c.db.defined()) sum_rows(c.dy, c.db);
  recorder().provider = bf16_provider_name();
}

}  // namespace tally::cpu
