// Convolution and recurrences over tokens: shared out by channels or heads, which do not meet, so
// each sum is the reference's, in its order.
#include "backends/cpu/kernels.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/causal_conv1d.h"
#include "core/ops/gated_delta_rule.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

// `count` places of an axis from `begin` on.
template <class T, class V>
V cut(V v, int axis, int64_t begin, int64_t count) {
  if (!v.defined()) return v;
  v.data = v.template pointer<T>() + begin * v.strides[axis];
  v.shape[axis] = count;
  return v;
}

constexpr int64_t kChannels = 64;  // of a piece of work

// sums[c] += w[c, j] x[row, c] over a block of channels; `taps` is w with the channels last.
template <class T>
void add_tap(std::vector<T>& sums, const T* taps, const T* x) {
  for (size_t c = 0; c < sums.size(); ++c) sums[c] += taps[c] * x[c];
}

template <class T>
std::vector<T> taps_of(const In& w, int64_t begin, int64_t end) {
  std::vector<T> taps;
  for (int64_t j = 0; j < w.cols(); ++j) {
    for (int64_t c = begin; c < end; ++c) taps.push_back(w.row<T>(c)[j]);
  }
  return taps;
}

template <class T>
void conv_forward(const ops::CausalConv1d::Forward& call) {
  const int64_t tokens = call.x.shape[1], width = call.w.cols();
  parallel_for(call.x.shape[2], kChannels, [&](int64_t begin, int64_t end) {
    const std::vector<T> taps = taps_of<T>(call.w, begin, end);
    std::vector<T> sums(static_cast<size_t>(end - begin));
    for (int64_t i = 0; i < call.x.shape[0] * tokens; ++i) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (int64_t j = width - 1 - call.reach().back(i); j < width; ++j)
        add_tap(sums, taps.data() + j * (end - begin), call.x.row<T>(i - (width - 1) + j) + begin);
      for (int64_t c = begin; c < end; ++c) {
        const T sum = sums[static_cast<size_t>(c - begin)];
        call.y.put(call.y.row<T>(i)[c], call.bias.defined() ? sum + call.bias.at<T>(c) : sum);
      }
    }
  });
}

template <class T>
void conv_to_input(const ops::CausalConv1d::Backward& call, int64_t begin, int64_t end) {
  const int64_t tokens = call.x.shape[1], width = call.w.cols();
  const std::vector<T> taps = taps_of<T>(call.w, begin, end);
  std::vector<T> sums(static_cast<size_t>(end - begin));
  for (int64_t i = 0; i < call.x.shape[0] * tokens; ++i) {
    std::fill(sums.begin(), sums.end(), T(0));
    const int64_t first = width - 1 - call.reach().ahead(i);
    for (int64_t j = width - 1; j >= first; --j)
      add_tap(sums, taps.data() + j * (end - begin), call.dy.row<T>(i + (width - 1) - j) + begin);
    for (int64_t c = begin; c < end; ++c)
      call.dx.put(call.dx.row<T>(i)[c], sums[static_cast<size_t>(c - begin)]);
  }
}

template <class T>
void conv_to_parameters(const ops::CausalConv1d::Backward& call, int64_t begin, int64_t end) {
  const int64_t tokens = call.x.shape[1], width = call.w.cols();
  std::vector<T> sums(static_cast<size_t>(end - begin));
  for (int64_t j = 0; call.dw.defined() && j < width; ++j) {
    std::fill(sums.begin(), sums.end(), T(0));
    const int64_t back = width - 1 - j;
    for (int64_t i = 0; i < call.x.shape[0] * tokens; ++i) {
      if (call.reach().back(i) >= back)
        add_tap(sums, call.dy.row<T>(i) + begin, call.x.row<T>(i - back) + begin);
    }
    for (int64_t c = begin; c < end; ++c)
      call.dw.put(call.dw.row<T>(c)[j], sums[static_cast<size_t>(c - begin)]);
  }
  if (!call.db.defined()) return;
  std::fill(sums.begin(), sums.end(), T(0));
  for (int64_t i = 0; i < call.dy.rows(); ++i) {
    for (int64_t c = begin; c < end; ++c)
      sums[static_cast<size_t>(c - begin)] += call.dy.row<T>(i)[c];
  }
  for (int64_t c = begin; c < end; ++c)
    call.db.put(call.db.at<T>(c), sums[static_cast<size_t>(c - begin)]);
}

template <class T>
void conv_backward(const ops::CausalConv1d::Backward& call) {
  parallel_for(call.x.shape[2], kChannels, [&](int64_t begin, int64_t end) {
    if (call.dx.defined()) conv_to_input<T>(call, begin, end);
    conv_to_parameters<T>(call, begin, end);
  });
}

// Calls f for each head of each sequence with a function that cuts its part out of a view whose
// axis of heads is given, and one that cuts the sequence's out of one without heads.
template <class T, class F>
void each_head(int64_t batch, int64_t heads, F&& f) {
  parallel_for(batch * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      f([&](const auto& v,
            int head_axis) { return cut<T>(cut<T>(v, 0, r / heads, 1), head_axis, r % heads, 1); },
        [&](const In& v) { return cut<int64_t>(v, 0, r / heads, 1); });
    }
  });
}

template <class T>
void delta_forward(const ops::GatedDeltaRule::Forward& call) {
  each_head<T>(call.q.shape[0], call.q.shape[2], [&](const auto& one, const auto& of_sequence) {
    ops::GatedDeltaRule::Forward{one(call.q, 2),
                                 one(call.k, 2),
                                 one(call.v, 2),
                                 one(call.g, 2),
                                 one(call.beta, 2),
                                 one(call.state, 1),
                                 of_sequence(call.documents),
                                 one(call.y, 2),
                                 one(call.last, 1),
                                 one(call.states, 1),
                                 call.scale}
        .template reference<T>();
  });
}

template <class T>
void delta_backward(const ops::GatedDeltaRule::Backward& call) {
  each_head<T>(call.q.shape[0], call.q.shape[2], [&](const auto& one, const auto& of_sequence) {
    ops::GatedDeltaRule::Backward{
        one(call.dy, 2),     one(call.dlast, 1), one(call.q, 2),      one(call.k, 2),
        one(call.v, 2),      one(call.g, 2),     one(call.beta, 2),   of_sequence(call.documents),
        one(call.states, 1), one(call.dq, 2),    one(call.dk, 2),     one(call.dv, 2),
        one(call.dg, 2),     one(call.dbeta, 2), one(call.dstate, 1), call.scale}
        .template reference<T>();
  });
}

template <class T>
void register_for(DType dtype) {
  const auto type = static_cast<size_t>(dtype);
  kernels<ops::CausalConv1d::Forward>[kCPU.kind][type] = conv_forward<T>;
  kernels<ops::CausalConv1d::Backward>[kCPU.kind][type] = conv_backward<T>;
}

}  // namespace

void register_mixers() {
  register_for<float>(DType::f32);
  register_for<double>(DType::f64);
  constexpr auto f64 = static_cast<size_t>(DType::f64);
  kernels<ops::GatedDeltaRule::Forward>[kCPU.kind][f64] = delta_forward<double>;
  kernels<ops::GatedDeltaRule::Backward>[kCPU.kind][f64] = delta_backward<double>;
}

}  // namespace tally::cpu
