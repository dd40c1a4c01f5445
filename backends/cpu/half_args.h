#pragma once
#include <cstdint>

namespace tally::cpu {

/// Rows of f32 against rows of bf16: y[i, j] (+)= sum over p of x[i, p] w[j, p] (+ b[j]), rounded to
/// bf16 once. Of y's columns those in [begin, end) are written.
struct HalfProduct {
  int64_t rows, begin, end, depth;
  const float* x;  // (rows, depth), dense
  const uint16_t* w;
  int64_t w_row;
  const uint16_t* b;  // null: none
  uint16_t* y;
  int64_t y_row;
  bool add;
};

}  // namespace tally::cpu
