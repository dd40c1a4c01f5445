#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/parameters.h"

namespace tally {

/// Rows of one parameter and where they are stored. A matrix has rows (its first axis, or its first
/// two, as the experts' has) of columns (its last), anything else rows of one value. "Row" counts
/// along the stored tensor's first axis, along its last where that is transposed.
struct WeightPart {
  std::string stored;                  // the tensor's name in the file
  std::vector<int64_t> stored_shape;   // as it must stand in the file
  bool transposed = false;             // stored as (in, out)
  int64_t from = 0, to = 0, rows = 0;  // rows from, from + step, ... there are to, to + 1, ... here
  int64_t step = 1;
  int64_t slice =
      -1;  // of the stored tensor's first axis, the rest being the matrix; -1: all of it
  bool trained = true;  // false: a buffer, here or in the public program, without a gradient there
};

/// One parameter and the parts that make it up, which cover its rows in order.
struct WeightSource {
  ParameterSpec parameter;
  std::vector<WeightPart> parts;

  /// Of the parameter, as a WeightPart counts them.
  int64_t columns() const;
  int64_t rows() const { return parameter.numel() / columns(); }
};

/// Sources for weights and buffers stored under our own names: one part each.
std::vector<WeightSource> own_weights(const ModelConfig&);

}  // namespace tally
