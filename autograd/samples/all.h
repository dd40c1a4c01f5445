#pragma once
// One line an op, in the order of core/ops/all.h.
#include "autograd/samples/embedding.h"
#include "autograd/samples/linear.h"
#include "autograd/samples/rms_norm.h"
#include "autograd/samples/rope.h"

namespace tally::samples {

inline std::vector<std::vector<Sample>> all() {
  return {
      embedding(),
      linear(),
      rms_norm(),
      rope(),
  };
}

}  // namespace tally::samples
