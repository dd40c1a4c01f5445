#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/dropout.h"

namespace tally::samples {

inline std::vector<Sample> dropout() {
  using O = ops::Dropout;
  std::vector<Sample> list = {
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
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, {0.3, seed, 1}, {normal(s, seed), absent()});
  });
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("added " + of, {0.4, seed, 2}, {normal(s, seed), normal(s, seed + 1)});
  });
  const Sample base = sample<O>("3 x 9", {0.5, 3, 1}, {normal({3, 9}, 13), normal({3, 9}, 14)});
  add_views(list, base, row_layouts());
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  return list;
}

}  // namespace tally::samples
