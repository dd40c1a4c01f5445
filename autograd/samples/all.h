#pragma once
// One line an op, in the order of core/ops/all.h.
#include "autograd/samples/attention.h"
#include "autograd/samples/cross_entropy.h"
#include "autograd/samples/elementwise.h"
#include "autograd/samples/embedding.h"
#include "autograd/samples/functions.h"
#include "autograd/samples/layer_norm.h"
#include "autograd/samples/layout.h"
#include "autograd/samples/linear.h"
#include "autograd/samples/linear_cross_entropy.h"
#include "autograd/samples/reductions.h"
#include "autograd/samples/rms_norm.h"
#include "autograd/samples/rope.h"

namespace tally::samples {

inline std::vector<std::vector<Sample>> all() {
  return {
      attention(),
      cross_entropy(),
      cumsum(),
      elementwise(),
      embedding(),
      functions(),
      layer_norm(),
      layout(),
      linear(),
      linear_cross_entropy(),
      reductions(),
      rms_norm(),
      rope(),
  };
}

}  // namespace tally::samples
