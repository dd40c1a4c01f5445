#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/top_k.h"

namespace tally::samples {

inline std::vector<Sample> top_k() {
  using O = ops::TopK;
  std::vector<Sample> list = {
      sample<O>("3 of 7", {3}, {normal({4, 7}, 1)}),
      sample<O>("all of 5", {5}, {normal({2, 2, 5}, 2)}),
      sample<O>("none", {0}, {normal({2, 3}, 3)}),
      sample<O>("1 of 1", {1}, {normal({3, 1}, 5)}),
      sample<O>("5 of wide rows", {5}, {normal({2, 37}, 6)}),
      sample<O>("extreme values", {3}, {values({5}, {0, 1e30, -1e30, 1e-30, -20})}).not_smooth(),
      sample<O>("no rows", {2}, {normal({0, 3}, 4)}),
  };
  for (const int64_t k : {1, 2}) {
    const std::string name = to_text(k) + " ";
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      return sample<O>(name + of, {std::min(k, s[-1])}, {normal(s, seed)});
    });
  }
  const Sample base = sample<O>("3 of 3 x 9", {3}, {normal({3, 9}, 7)});
  add_views(list, base, row_layouts());
  add_numbers(list, base, all_numbers());
  return list;
}

}  // namespace tally::samples
