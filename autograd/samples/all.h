#pragma once
// One line an op, in the order of core/ops/all.h.
#include "autograd/samples/linear.h"
#include "autograd/samples/rms_norm.h"

namespace tally::samples {

inline std::vector<std::vector<Sample>> all() {
  return {
      linear(),
      rms_norm(),
  };
}

}  // namespace tally::samples
