#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/soft_cap.h"

namespace tally::samples {

inline std::vector<Sample> soft_cap() {
  using O = ops::SoftCap;
  std::vector<Sample> list = {
      sample<O>("5 x 7, cap 2", {2}, {normal({5, 7}, 1, 2)}),
      sample<O>("cap 50", {50}, {normal({2, 3, 4}, 2, 60)}),
      sample<O>("one element", {30}, {normal({1}, 3)}),
      sample<O>("a scalar", {30}, {normal({}, 4)}),
      sample<O>("no elements", {30}, {normal({2, 0}, 5)}),
      sample<O>("wide rows", {5}, {normal({3, 37}, 6, 4)}),
      sample<O>("saturated", {50}, {values({6}, {0, 10, 50, 100, 1e4, -1e4})}).not_smooth(),
  };
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, {1.5}, {normal(s, seed)});
  });
  const Sample base = sample<O>("3 x 9", {1.5}, {normal({3, 9}, 7)});
  add_views(list, base, row_layouts());
  add_numbers(list, base, all_numbers());
  return list;
}

}  // namespace tally::samples
