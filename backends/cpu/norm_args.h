#pragma once
#include <cstdint>

namespace tally::cpu {

/// Rows of RMSNorm (mean is null) or LayerNorm. Strides are in elements; w and b may be null.
struct NormForward {
  int64_t rows, cols;
  const float* x;
  int64_t x_stride;
  const float *w, *b;
  float* y;
  int64_t y_stride;
  float *mean, *r;
  float eps, gain_offset;  // the gain is w + gain_offset
  bool add;
};

/// dx is null when not wanted; dw and db, null when not wanted, are added to.
struct NormBackward {
  int64_t rows, cols;
  const float* dy;
  int64_t dy_stride;
  const float* x;
  int64_t x_stride;
  const float *w, *mean, *r;
  float* dx;
  int64_t dx_stride;
  float *dw, *db;
  float gain_offset;
  bool add;  // to dx
};

}  // namespace tally::cpu
