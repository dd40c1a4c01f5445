#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/parameters.h"

namespace tally {

/// Rows of one parameter and where they are stored. "Row" counts along the parameter's first axis,
/// of the stored tensor's last axis where that is transposed.
struct WeightPart {
  std::string stored;                  // the tensor's name in the file
  std::vector<int64_t> stored_shape;   // as it must stand in the file
  bool transposed = false;             // stored as (in, out)
  int64_t from = 0, to = 0, rows = 0;  // rows [from, from + rows) there are [to, to + rows) here
};

/// One parameter and the parts that make it up, which cover its rows in order.
struct WeightSource {
  ParameterSpec parameter;
  std::vector<WeightPart> parts;
};

/// Sources for weights and buffers stored under our own names: one part each.
std::vector<WeightSource> own_weights(const ModelConfig&);

}  // namespace tally
