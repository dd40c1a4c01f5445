#include "core/ops/softmax.h"

#include <vector>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loop_axes.h"
#include "backends/cpu/plain_loops.h"
#include "core/ops/sink_softmax.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

/// The bytes of the mask that row i of `sizes` sees.
class MaskRows {
 public:
  MaskRows(const In& mask, const Shape& sizes) {
    if (!mask.defined()) return;
    bytes_ = mask.pointer<uint8_t>();
    const Shape strides = ops::broadcast_strides(mask, sizes);
    rows_ = sizes.drop_last(), strides_ = strides.drop_last();
    fits_ = strides[-1] == 1 || sizes[-1] <= 1;
  }
  /// Whether they lie one after the other.
  bool fit() const { return fits_; }
  const uint8_t* operator()(int64_t row) const {
    return bytes_ ? bytes_ + offset_of(row, rows_, strides_) : nullptr;
  }

 private:
  const uint8_t* bytes_ = nullptr;
  Shape rows_, strides_;
  bool fits_ = true;
};

template <class Call>
void forward(const Call& c) {
  const MaskRows mask(c.mask, c.x.shape);
  if (!mask.fit()) return plain_loops<float>(c);
  constexpr bool log = std::is_same_v<Call, ops::LogSoftmax::Forward>;
  const int64_t n = c.x.cols();
  parallel_for(c.x.rows(), rows_of_piece(n), [&](int64_t i, int64_t end) {
    for (; i < end; ++i)
      isa().softmax_forward({n, c.x.template row<float>(i), mask(i), c.y.template row<float>(i),
                             static_cast<float>(c.scale), log, c.y.accumulate});
  });
}

template <class Call>
void backward(const Call& c) {
  constexpr bool log = std::is_same_v<Call, ops::LogSoftmax::Backward>;
  In bytes;
  if constexpr (log) bytes = c.mask;
  const MaskRows mask(bytes, c.dy.shape);
  if (!mask.fit()) return plain_loops<float>(c);
  const int64_t n = c.dy.cols();
  parallel_for(c.dy.rows(), rows_of_piece(n), [&](int64_t i, int64_t end) {
    for (; i < end; ++i)
      isa().softmax_backward({n, c.dy.template row<float>(i), c.y.template row<float>(i), mask(i),
                              c.dx.template row<float>(i), static_cast<float>(c.scale), log,
                              c.dx.accumulate});
  });
}

void sink_forward(const ops::SinkSoftmax::Forward& c) {
  const MaskRows mask(c.mask, c.x.shape);
  if (!mask.fit()) return plain_loops<float>(c);
  const int64_t n = c.x.cols();
  const Shape rows = ops::SinkSoftmax::rows_of(c.x);
  const Shape strides = c.sink.defined() ? ops::SinkSoftmax::sink_strides(c.sink, rows) : rows;
  parallel_for(c.x.rows(), rows_of_piece(n), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      float sink = 0;
      if (c.sink.defined()) {
        const int64_t at = offset_of(i, rows, strides), cols = c.sink.cols();
        sink = c.sink.row<float>(at / cols)[at % cols];
      }
      isa().softmax_forward({n, c.x.row<float>(i), mask(i), c.y.row<float>(i),
                             static_cast<float>(c.scale), false, c.y.accumulate, sink,
                             c.rest.pointer<float>() + i});
    }
  });
}

void sink_backward(const ops::SinkSoftmax::Backward& c) {
  const int64_t n = c.dy.cols();
  std::vector<float> dots(static_cast<size_t>(c.dy.rows()));
  parallel_for(c.dy.rows(), rows_of_piece(n), [&](int64_t i, int64_t end) {
    for (; i < end; ++i)
      isa().softmax_backward({n, c.dy.row<float>(i), c.y.row<float>(i), nullptr,
                              c.dx.defined() ? c.dx.row<float>(i) : nullptr,
                              static_cast<float>(c.scale), false, c.dx.accumulate,
                              &dots[static_cast<size_t>(i)]});
  });
  if (!c.dsink.defined()) return;
  std::vector<float> sums(static_cast<size_t>(c.dsink.numel()));
  ops::SinkSoftmax::each_sink(c.dsink, ops::SinkSoftmax::rows_of(c.dy), [&](int64_t i, int64_t at) {
    sums[static_cast<size_t>(at)] -= c.rest.at<float>(i) * dots[static_cast<size_t>(i)];
  });
  for (int64_t k = 0; k < c.dsink.numel(); ++k)
    c.dsink.put(c.dsink.row<float>(k / c.dsink.cols())[k % c.dsink.cols()],
                sums[static_cast<size_t>(k)]);
}

}  // namespace

void register_softmax() {
  constexpr size_t f32 = static_cast<size_t>(DType::f32);
  kernels<ops::Softmax::Forward>[kCPU.kind][f32] = forward<ops::Softmax::Forward>;
  kernels<ops::Softmax::Backward>[kCPU.kind][f32] = backward<ops::Softmax::Backward>;
  kernels<ops::LogSoftmax::Forward>[kCPU.kind][f32] = forward<ops::LogSoftmax::Forward>;
  kernels<ops::LogSoftmax::Backward>[kCPU.kind][f32] = backward<ops::LogSoftmax::Backward>;
  kernels<ops::SinkSoftmax::Forward>[kCPU.kind][f32] = sink_forward;
  kernels<ops::SinkSoftmax::Backward>[kCPU.kind][f32] = sink_backward;
}

}  // namespace tally::cpu
