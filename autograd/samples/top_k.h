#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/top_k.h"

namespace tally::samples {

inline std::vector<Sample> top_k() {
  using O = ops::TopK;
  return {
      sample<O>("3 of 7", {3}, {normal({4, 7}, 1)}),
      sample<O>("all of 5", {5}, {normal({2, 2, 5}, 2)}),
      sample<O>("none", {0}, {normal({2, 3}, 3)}),
      sample<O>("no rows", {2}, {normal({0, 3}, 4)}),
  };
}

}  // namespace tally::samples
