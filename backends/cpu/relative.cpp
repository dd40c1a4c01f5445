#include <cstring>
#include <vector>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "core/ops/relative_bias.h"
#include "core/ops/relative_shift.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

// Rows to a task: about 128 kB.
int64_t rows_of_task(int64_t cols) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(cols, 1));
}

// A row of the bias is a stretch of the head's numbers by distance, moved by one from row to row.
void relative_bias(const ops::RelativeBias::Forward& c) {
  const std::vector<int64_t> buckets = c.buckets(c.w.shape[0]);
  const int64_t heads = c.w.shape[1], tokens = c.attrs.queries, keys = c.attrs.keys;
  const auto span = static_cast<int64_t>(buckets.size());
  std::vector<float> by_distance(static_cast<size_t>(heads * span));
  for (int64_t i = 0; i < span; ++i) {
    const float* row = c.w.row<float>(buckets[static_cast<size_t>(i)]);
    for (int64_t h = 0; h < heads; ++h) by_distance[static_cast<size_t>(h * span + i)] = row[h];
  }
  if (c.y.numel() == 0) return;
  parallel_for(heads * tokens, rows_of_task(keys), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t h = row / tokens, t = row % tokens;
      const float* from = by_distance.data() + h * span + c.distance(t, 0);
      float* to = c.y.row<float>(row);
      if (c.y.accumulate)
        isa().add(keys, from, to, to, false);
      else
        std::memcpy(to, from, static_cast<size_t>(keys) * sizeof(float));
    }
  });
}

// First the sums by distance, then those by bucket.
void relative_bias_backward(const ops::RelativeBias::Backward& c) {
  const std::vector<int64_t> buckets = c.buckets(c.dw.shape[0]);
  const int64_t tokens = c.attrs.queries, keys = c.attrs.keys;
  parallel_for(c.dw.shape[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      std::vector<float> by_distance(buckets.size(), 0.0F);
      for (int64_t t = 0; t < tokens && keys > 0; ++t) {
        float* sums = by_distance.data() + c.distance(t, 0);
        isa().add(keys, c.dy.row<float>(h * tokens + t), sums, sums, false);
      }
      std::vector<float> sums(static_cast<size_t>(c.dw.shape[0]), 0.0F);
      for (size_t i = 0; i < buckets.size(); ++i)
        sums[static_cast<size_t>(buckets[i])] += by_distance[i];
      for (int64_t b = 0; b < c.dw.shape[0]; ++b)
        c.dw.put(c.dw.row<float>(b)[h], sums[static_cast<size_t>(b)]);
    }
  });
}

void relative_shift(const ops::RelativeShift::Turn& c) {
  if (c.to.numel() == 0) return;
  const int64_t width = c.to.cols();
  parallel_for(c.to.rows(), rows_of_task(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t last = c.keys - c.tokens() + row % c.tokens();
      const float* from = c.from.row<float>(row);
      float* to = c.to.row<float>(row);
      for (int64_t i = 0; i < width; ++i) c.to.put(to[i], i <= last ? from[last - i] : 0.0F);
    }
  });
}

}  // namespace

void register_relative() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ops::RelativeBias::Forward>[kCPU.kind][f32] = relative_bias;
  kernels<ops::RelativeBias::Backward>[kCPU.kind][f32] = relative_bias_backward;
  kernels<ops::RelativeShift::Forward>[kCPU.kind][f32] = [](const ops::RelativeShift::Forward& c) {
    relative_shift(c);
  };
  kernels<ops::RelativeShift::Backward>[kCPU.kind][f32] =
      [](const ops::RelativeShift::Backward& c) { relative_shift(c); };
}

}  // namespace tally::cpu
