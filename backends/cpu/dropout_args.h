#pragma once
#include <cstdint>

namespace tally::cpu {

/// y[i] (+)= (residual[i] +) factor x[i] where word first + i of the stream is not below
/// `threshold`, up to 2^32; i < n. residual may be null.
struct DropoutRow {
  int64_t n;
  const float *x, *residual;
  float* y;
  uint64_t seed, stream, first, threshold;
  float factor;
  bool add;
};

}  // namespace tally::cpu
