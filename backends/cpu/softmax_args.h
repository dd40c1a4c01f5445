#pragma once
#include <cstdint>

namespace tally::cpu {

/// One row of softmax or, with `log`, of its logarithm. The mask has a byte an element (0:
/// forbidden) or is null.
struct SoftmaxForward {
  int64_t n;
  const float* x;
  const uint8_t* mask;
  float* y;
  float scale;
  bool log, add;
};

/// Its gradient; y is the output of the forward pass. Only the logarithm has a mask.
struct SoftmaxBackward {
  int64_t n;
  const float *dy, *y;
  const uint8_t* mask;
  float* dx;
  float scale;
  bool log, add;
};

}  // namespace tally::cpu
