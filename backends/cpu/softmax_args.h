#pragma once
#include <cstdint>

namespace tally::cpu {

/// One row of softmax or, with `log`, of its logarithm. The mask has a byte an element (0:
/// forbidden) or is null. With `rest`, softmax has one more logit, the sink, whose share it receives.
struct SoftmaxForward {
  int64_t n;
  const float* x;
  const uint8_t* mask;
  float* y;
  float scale;
  bool log, add;
  float sink = 0;
  float* rest = nullptr;
};

/// Its gradient; y is the output of the forward pass. Only the logarithm has a mask. dx may be null;
/// `dot`, where it is not, receives the sum of dy y.
struct SoftmaxBackward {
  int64_t n;
  const float *dy, *y;
  const uint8_t* mask;
  float* dx;
  float scale;
  bool log, add;
  float* dot = nullptr;
};

}  // namespace tally::cpu
