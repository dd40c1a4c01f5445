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
      sample<O>("wide rows", {1}, {normal({2, 37}, 8), indices({2, 35}, 9, 37)}),
      sample<O>("extreme values, one asked for again", {0},
                {values({4}, {0, 1e30, -1e30, -20}), indices({5}, {1, 1, 3, 0, 2})}),
  };
}

inline std::vector<Sample> index_select() {
  using O = ops::IndexSelect;
  return {
      sample<O>("rows, repeated", {0}, {normal({5, 3}, 1), indices({6}, {0, 4, 4, 2, 4, 0})}),
      sample<O>("the middle axis", {1}, {normal({2, 3, 4}, 2), indices({2}, {2, 0})}),
      sample<O>("the last axis", {-1}, {normal({2, 3}, 3), indices({5}, 4, 3)}),
      sample<O>("no indices", {0}, {normal({5, 3}, 5), indices({0}, {})}),
      sample<O>("one of one", {0}, {normal({1, 3}, 6), indices({1}, {0})}),
      sample<O>("wide rows", {0}, {normal({5, 37}, 7), indices({3}, {4, 0, 4})}),
      sample<O>("extreme values", {0}, {values({4}, {0, 1e30, -1e30, -20}), indices({2}, {1, 3})}),
  };
}

}  // namespace tally::samples
