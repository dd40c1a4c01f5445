// Mixtures of experts: routers by rows of tokens, rows moved by their places, their gradients added
// up in the order of the tokens.
#include <cstring>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "backends/cpu/reduce.h"
#include "core/ops/expert_combine.h"
#include "core/ops/expert_gather.h"
#include "core/ops/load_balance_loss.h"
#include "core/ops/moe_router.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

using ops::ExpertCombine;
using ops::ExpertGather;
using ops::LoadBalanceLoss;
using ops::MoeRouter;

/// Calls f(begin, count) for pieces of rows.
template <class F>
void each_rows(int64_t rows, int64_t cols, F&& f) {
  parallel_for(rows, rows_of_piece(cols), [&](int64_t i, int64_t end) { f(i, end - i); });
}

template <class T>
void router_forward(const MoeRouter::Forward& c) {
  each_rows(c.x.rows(), c.x.cols(), [&](int64_t i, int64_t n) {
    MoeRouter::Forward{some_rows(c.x, i, n), c.bias, some_rows(c.w, i, n),
                       some_rows(c.experts, i, n), c.a}
        .template reference<T>();
  });
}
template <class T>
void router_backward(const MoeRouter::Backward& c) {
  each_rows(c.x.rows(), c.x.cols(), [&](int64_t i, int64_t n) {
    MoeRouter::Backward{some_rows(c.dw, i, n), some_rows(c.x, i, n), some_rows(c.experts, i, n),
                        some_rows(c.dx, i, n), c.a}
        .template reference<T>();
  });
}

/// Calls f(piece, row, p) for each row of logits, p being their softmax; `sums` has E numbers for
/// each piece and the rows behind them.
template <class F>
void each_softmax(const In& x, const Cut& cut, float* sums, F&& f) {
  const int64_t e = x.cols();
  parallel_for(x.rows(), cut.piece, [&](int64_t i, int64_t end) {
    const int64_t piece = i / cut.piece;
    float* p = sums + (cut.count + piece) * e;
    for (; i < end; ++i) {
      isa().softmax_forward({e, x.row<float>(i), nullptr, p, 1, false, false});
      f(piece, i, p);
    }
  });
}
constexpr int64_t kMostExperts = 4096;  // whose sums fit the scratch

void balance_forward(const LoadBalanceLoss::Forward& c) {
  const int64_t e = c.x.cols();
  if (c.x.rows() == 0 || e > kMostExperts) return plain_loops<float>(c);
  const Cut cut(c.x.rows(), rows_of_piece(e));
  float* sums = reinterpret_cast<float*>(thread_scratch().data());
  std::fill(sums, sums + cut.count * e, 0.0f);
  each_softmax(c.x, cut, sums, [&](int64_t piece, int64_t, const float* p) {
    isa().add(e, p, sums + piece * e, sums + piece * e, false);
  });
  const auto counts = LoadBalanceLoss::counts_of<float>(c.experts, e);
  float sum = 0;
  for (int64_t k = 0; k < cut.count; ++k)
    for (int64_t i = 0; i < e; ++i) sum += counts[static_cast<size_t>(i)] * sums[k * e + i];
  c.loss.at<float>(0) = sum * static_cast<float>(LoadBalanceLoss::factor(c.x));
}

void balance_backward(const LoadBalanceLoss::Backward& c) {
  const int64_t e = c.x.cols();
  if (c.x.rows() == 0 || e > kMostExperts) return plain_loops<float>(c);
  const auto counts = LoadBalanceLoss::counts_of<float>(c.experts, e);
  const float* count = counts.data();
  const float g = c.dloss.at<float>(0) * static_cast<float>(LoadBalanceLoss::factor(c.x));
  each_softmax(c.x, Cut(c.x.rows(), rows_of_piece(e)),
               reinterpret_cast<float*>(thread_scratch().data()),
               [&](int64_t, int64_t row, const float* p) {
                 const float dot = sum_of<float>(e, [&](int64_t i) { return count[i] * p[i]; });
                 float* dx = c.dx.row<float>(row);
                 for (int64_t i = 0; i < e; ++i) c.dx.put(dx[i], g * p[i] * (count[i] - dot));
               });
}

void gather_forward(const ExpertGather::Forward& c) {
  c.plan<float>();
  const int64_t k = c.experts.cols(), d = c.x.cols();
  const auto* places = c.places.pointer<int64_t>();
  each_rows(c.experts.numel(), d, [&](int64_t n, int64_t count) {
    for (const int64_t end = n + count; n < end; ++n)
      isa().scale(d, 1, c.x.row<float>(n / k), c.rows.row<float>(places[n]), c.rows.accumulate);
  });
}

/// y = the sum of factor(r) from(r) for r < k, in order.
template <class Factor, class Row>
void sum_rows(int64_t d, int64_t k, Factor&& factor, Row&& from, float* y, bool add) {
  for (int64_t r = 0; r < k; ++r) isa().scale(d, factor(r), from(r), y, add || r > 0);
}

void gather_backward(const ExpertGather::Backward& c) {
  const int64_t k = c.places.cols(), d = c.dx.cols();
  if (k == 0) return plain_loops<float>(c);
  each_rows(c.dx.rows(), k * d, [&](int64_t i, int64_t count) {
    for (const int64_t end = i + count; i < end; ++i)
      sum_rows(
          d, k, [](int64_t) { return 1.0f; },
          [&](int64_t r) { return c.drows.row<float>(c.places.at<int64_t>(i * k + r)); },
          c.dx.row<float>(i), c.dx.accumulate);
  });
}

void combine_forward(const ExpertCombine::Forward& c) {
  const int64_t k = c.w.cols(), d = c.y.cols();
  if (k == 0) return plain_loops<float>(c);
  each_rows(c.y.rows(), k * d, [&](int64_t i, int64_t count) {
    for (const int64_t end = i + count; i < end; ++i)
      sum_rows(
          d, k, [&](int64_t r) { return c.w.row<float>(i)[r]; },
          [&](int64_t r) { return c.rows.row<float>(c.places.at<int64_t>(i * k + r)); },
          c.y.row<float>(i), c.y.accumulate);
  });
}

void combine_to_rows(const ExpertCombine::Backward& c) {
  const int64_t k = c.w.cols(), d = c.dy.cols();
  int64_t* first = reinterpret_cast<int64_t*>(c.scratch);
  int64_t* next = first + c.drows.rows();
  c.link<float>(first, next);
  each_rows(c.drows.rows(), d, [&](int64_t m, int64_t count) {
    for (const int64_t end = m + count; m < end; ++m) {
      float* row = c.drows.row<float>(m);
      if (first[m] < 0 && !c.drows.accumulate)
        std::memset(row, 0, static_cast<size_t>(d) * sizeof(float));
      for (int64_t n = first[m]; n >= 0; n = next[n])
        isa().scale(d, c.w.row<float>(n / k)[n % k], c.dy.row<float>(n / k), row,
                    c.drows.accumulate || n != first[m]);
    }
  });
}

void combine_backward(const ExpertCombine::Backward& c) {
  const int64_t k = c.w.cols(), d = c.dy.cols();
  if (c.drows.defined()) combine_to_rows(c);
  if (!c.dw.defined()) return;
  each_rows(c.dy.rows(), k * d, [&](int64_t i, int64_t count) {
    for (const int64_t end = i + count; i < end; ++i) {
      const float* dy = c.dy.row<float>(i);
      for (int64_t r = 0; r < k; ++r) {
        const float* row = c.rows.row<float>(c.places.at<int64_t>(i * k + r));
        c.dw.put(c.dw.row<float>(i)[r],
                 sum_of<float>(d, [&](int64_t j) { return dy[j] * row[j]; }));
      }
    }
  });
}

template <class T>
void register_routers() {
  constexpr auto type = static_cast<size_t>(dtype_of<T>);
  kernels<MoeRouter::Forward>[kCPU.kind][type] = router_forward<T>;
  kernels<MoeRouter::Backward>[kCPU.kind][type] = router_backward<T>;
}

}  // namespace

void register_experts() {
  register_routers<float>();
  register_routers<double>();
  constexpr auto f32 = static_cast<size_t>(DType::f32);
  kernels<LoadBalanceLoss::Forward>[kCPU.kind][f32] = balance_forward;
  kernels<LoadBalanceLoss::Backward>[kCPU.kind][f32] = balance_backward;
  kernels<ExpertGather::Forward>[kCPU.kind][f32] = gather_forward;
  kernels<ExpertGather::Backward>[kCPU.kind][f32] = gather_backward;
  kernels<ExpertCombine::Forward>[kCPU.kind][f32] = combine_forward;
  kernels<ExpertCombine::Backward>[kCPU.kind][f32] = combine_backward;
}

}  // namespace tally::cpu
