#pragma once
#include "core/tensor.h"

namespace tally::nn {

/// The parameters of a product y = x W^T + b within a layer; undefined where a layer has none.
///   weight (rows, in)   bias (rows), or undefined
struct Matrix {
  Tensor weight, bias;

  Matrix() = default;
  /// Allocated, not set.
  Matrix(int64_t rows, int64_t in, bool with_bias, DType dtype, Device device)
      : weight(empty({rows, in}, dtype, device)) {
    if (with_bias) bias = empty({rows}, dtype, device);
  }
};

}  // namespace tally::nn
