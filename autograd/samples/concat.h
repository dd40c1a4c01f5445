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
      sample<O>("wide rows", {-1},
                {normal({2, 19}, 9), normal({2, 37}, 10), none, none, none, none, none, none}),
      sample<O>("eight of one", {0},
                {normal({1}, 11), normal({1}, 12), normal({1}, 13), normal({1}, 14),
                 normal({1}, 15), normal({1}, 16), normal({1}, 17), normal({1}, 18)}),
      sample<O>("extreme values", {0},
                {values({3}, {0, 1e30, -1e30}), values({2}, {1e-30, -20}), none, none, none, none,
                 none, none}),
  };
}

inline std::vector<Sample> split() {
  using O = ops::Split;
  return {
      sample<O>("2, 1 and 3 of the last axis", {-1, 3, {2, 1, 3}}, {normal({2, 3, 6}, 1)}),
      sample<O>("rows", {0, 2, {1, 4}}, {normal({5, 3}, 2)}),
      sample<O>("an empty part", {0, 2, {0, 2}}, {normal({2, 2}, 3)}),
      sample<O>("all of it empty", {0, 2, {0, 0}}, {normal({0, 3}, 4)}),
      sample<O>("single columns", {1, 2, {1, 1}}, {normal({3, 2}, 5)}),
      sample<O>("one row in wide parts", {-1, 2, {19, 20}}, {normal({1, 39}, 6)}),
      sample<O>("extreme values", {0, 2, {2, 3}}, {values({5}, {0, 1e30, -1e30, 1e-30, -20})}),
  };
}

}  // namespace tally::samples
