#pragma once
#include <algorithm>
#include <cstdint>

namespace tally::cpu {

/// What few_rows_kernels.h takes for a few rows, and gemm.cpp's packing for more.
inline constexpr int64_t kFewRows = 8;

/// Columns that a thread takes at once: enough to stream, few enough to share out a small matrix.
constexpr int64_t few_rows_piece(int64_t columns) {
  return std::clamp<int64_t>(columns / 1024, 1, 4) * 32;
}

/// A few rows of f32 against rows of W (float, or uint16_t for bf16): y[i, j] (+)= sum over p of
/// x[i, p] w[j, p] (+ b[j]), rounded to W once. Of y's columns those in [begin, end) are written.
template <class W>
struct FewRows {
  int64_t rows, begin, end, depth;
  const float* x;
  int64_t x_row;
  const W* w;
  int64_t w_row;
  const W* b;  // null: none
  W* y;
  int64_t y_row;
  bool add;
};

}  // namespace tally::cpu
