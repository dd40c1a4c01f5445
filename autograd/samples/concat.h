#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/concat.h"

namespace tally::samples {

inline std::vector<Sample> concat() {
  using O = ops::Concat;
  const auto none = absent();
  return {
      sample<O>("three along the middle axis", {1},
                {normal({2, 3, 4}, 1), normal({2, 1, 4}, 2), normal({2, 2, 4}, 3), none, none, none,
                 none, none}),
      sample<O>("two along the first axis", {0},
                {normal({2, 3}, 4), normal({3, 3}, 5), none, none, none, none, none, none}),
      sample<O>("one is empty", {-1},
                {normal({1, 0}, 6), normal({1, 2}, 7), none, none, none, none, none, none}),
      sample<O>("one alone", {0}, {normal({3}, 8), none, none, none, none, none, none, none}),
  };
}

inline std::vector<Sample> split() {
  using O = ops::Split;
  return {
      sample<O>("2, 1 and 3 of the last axis", {-1, 3, {2, 1, 3}}, {normal({2, 3, 6}, 1)}),
      sample<O>("rows", {0, 2, {1, 4}}, {normal({5, 3}, 2)}),
      sample<O>("an empty part", {0, 2, {0, 2}}, {normal({2, 2}, 3)}),
  };
}

}  // namespace tally::samples
