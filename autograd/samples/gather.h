#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/gather.h"

namespace tally::samples {

inline std::vector<Sample> gather() {
  using O = ops::Gather;
  return {
      sample<O>("along the last axis", {-1}, {normal({3, 6}, 1), indices({3, 4}, 2, 6)}),
      sample<O>("along the first axis, fewer columns", {0},
                {normal({4, 5}, 3), indices({7, 3}, 4, 4)}),
      sample<O>("one element", {0}, {normal({1}, 5), indices({1}, {0})}),
      sample<O>("no indices", {1}, {normal({3, 6}, 6), indices({3, 0}, 7, 6)}),
  };
}

inline std::vector<Sample> index_select() {
  using O = ops::IndexSelect;
  return {
      sample<O>("rows, repeated", {0}, {normal({5, 3}, 1), indices({6}, {0, 4, 4, 2, 4, 0})}),
      sample<O>("the middle axis", {1}, {normal({2, 3, 4}, 2), indices({2}, {2, 0})}),
      sample<O>("the last axis", {-1}, {normal({2, 3}, 3), indices({5}, 4, 3)}),
      sample<O>("no indices", {0}, {normal({5, 3}, 5), indices({0}, {})}),
  };
}

}  // namespace tally::samples
