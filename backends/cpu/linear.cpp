#include "core/ops/linear.h"

#include <algorithm>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/linear_half.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/expert_linear.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

// Sums over the rows, in their order; columns are shared out.
void column_sums(const In& x, const Out& out, float) {
  parallel_for(x.cols(), 64, [&](int64_t begin, int64_t end) {
    isa().column_sums(x.rows(), end - begin, x.pointer<float>() + begin, x.row_stride,
                      out.pointer<float>() + begin, out.accumulate);
  });
}
void column_sums(const In& x, const Out& out, double) {
  parallel_for(x.cols(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < x.rows(); ++i) sum += x.row<double>(i)[j];
      out.put(out.at<double>(j), sum);
    }
  });
}

template <class T>
void linear_forward(const ops::Linear::Forward& c) {
  if (!fits_gemm(c.x) || !fits_gemm(c.w) || !fits_gemm(c.y)) return plain_loops<T>(c);
  Gemm<T> g;
  g.trans_b = true;
  g.m = c.y.rows(), g.n = c.w.rows(), g.k = c.w.cols();
  g.a = c.x.pointer<T>(), g.lda = leading(c.x);
  g.b = c.w.pointer<T>(), g.ldb = leading(c.w);
  g.beta = c.y.accumulate ? T(1) : T(0);
  g.c = c.y.pointer<T>(), g.ldc = leading(c.y);
  g.bias = c.b.pointer<T>();
  gemm(g);
  recorder().provider = gemm_provider_name();
}

template <class T>
void linear_backward(const ops::Linear::Backward& c) {
  if (!fits_gemm(c.dy) || !fits_gemm(c.x) || !fits_gemm(c.w) || !fits_gemm(c.dx) ||
      !fits_gemm(c.dw))
    return plain_loops<T>(c);
  const int64_t rows = c.dy.rows(), out = c.w.rows(), in = c.w.cols();
  if (c.dx.defined()) {
    gemm(false, false, rows, in, out, c.dy.pointer<T>(), leading(c.dy), c.w.pointer<T>(),
         leading(c.w), c.dx.accumulate ? T(1) : T(0), c.dx.pointer<T>(), leading(c.dx));
  }
  if (c.dw.defined()) {
    gemm(true, false, out, in, rows, c.dy.pointer<T>(), leading(c.dy), c.x.pointer<T>(),
         leading(c.x), c.dw.accumulate ? T(1) : T(0), c.dw.pointer<T>(), leading(c.dw));
  }
  if (c.db.defined()) column_sums(c.dy, c.db, T(0));
  recorder().provider = gemm_provider_name();
}

// One product an expert.
template <class T>
void expert_forward(const ops::ExpertLinear::Forward& c) {
  c.each<T>(linear_forward<T>);
}
template <class T>
void expert_backward(const ops::ExpertLinear::Backward& c) {
  c.each<T>(linear_backward<T>);
}
template <class Call>
void expert_half(const Call& c) {
  c.template each<bf16>([](const auto& one) { linear_half(one); });
}

}  // namespace

void register_linear() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32), f64 = static_cast<size_t>(DType::f64),
                   half = static_cast<size_t>(DType::bf16);
  kernels<ops::Linear::Forward>[kCPU.kind][f32] = linear_forward<float>;
  kernels<ops::Linear::Forward>[kCPU.kind][f64] = linear_forward<double>;
  kernels<ops::Linear::Forward>[kCPU.kind][half] = linear_half;
  kernels<ops::Linear::Backward>[kCPU.kind][half] = linear_half;
  kernels<ops::Linear::Backward>[kCPU.kind][f32] = linear_backward<float>;
  kernels<ops::Linear::Backward>[kCPU.kind][f64] = linear_backward<double>;
  kernels<ops::ExpertLinear::Forward>[kCPU.kind][f32] = expert_forward<float>;
  kernels<ops::ExpertLinear::Forward>[kCPU.kind][f64] = expert_forward<double>;
  kernels<ops::ExpertLinear::Forward>[kCPU.kind][half] = expert_half<ops::ExpertLinear::Forward>;
  kernels<ops::ExpertLinear::Backward>[kCPU.kind][half] = expert_half<ops::ExpertLinear::Backward>;
  kernels<ops::ExpertLinear::Backward>[kCPU.kind][f32] = expert_backward<float>;
  kernels<ops::ExpertLinear::Backward>[kCPU.kind][f64] = expert_backward<double>;
}

}  // namespace tally::cpu
