#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/dropout.h"

namespace tally::samples {

inline std::vector<Sample> dropout() {
  using O = ops::Dropout;
  return {
      sample<O>("5 x 7, p 0.5", {0.5, 1, 0}, {normal({5, 7}, 1), absent()}),
      sample<O>("added to a residual, p 0.1", {0.1, 1, 3},
                {normal({2, 3, 4}, 2), normal({2, 3, 4}, 3)}),
      sample<O>("wide rows", {0.3, 7, 1}, {normal({3, 131}, 4), normal({3, 131}, 5)}),
      sample<O>("p 0", {0, 1, 0}, {normal({5}, 6), absent()}),
      sample<O>("p 1", {1, 1, 0}, {normal({5}, 7), normal({5}, 8)}),
      sample<O>("one element", {0.5, 2, 0}, {normal({1}, 9), absent()}),
      sample<O>("no elements", {0.5, 1, 0}, {normal({0, 3}, 10), normal({0, 3}, 11)}),
      sample<O>("extreme values", {0.5, 3, 0},
                {values({2, 3}, {0, 1e30, -1e30, 1e-30, -20, 30}), normal({2, 3}, 12)})
          .not_smooth(),
  };
}

}  // namespace tally::samples
