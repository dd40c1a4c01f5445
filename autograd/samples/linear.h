#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/linear.h"

namespace tally::samples {

inline std::vector<Sample> linear() {
  using O = ops::Linear;
  std::vector<Sample> list = {
      sample<O>("4 x 5 to 3 with bias", {}, {normal({4, 5}, 1), normal({3, 5}, 2), normal({3}, 3)}),
      sample<O>("batch of 2 x 3 rows, no bias", {},
                {normal({2, 3, 4}, 4), normal({6, 4}, 5), absent()}),
      sample<O>("one row", {}, {normal({9}, 6), normal({2, 9}, 7), normal({2}, 8)}),
      sample<O>("odd sizes", {}, {normal({17, 33}, 9), normal({19, 33}, 10), normal({19}, 11)}),
      sample<O>("no rows", {}, {normal({0, 4}, 12), normal({3, 4}, 13), normal({3}, 14)}),
      sample<O>("one of one", {}, {normal({1, 1}, 18), normal({1, 1}, 19), normal({1}, 20)}),
      sample<O>("no outputs", {}, {normal({3, 2}, 21), normal({0, 2}, 22), absent()}),
      sample<O>(
          "extreme values", {},
          {values({2, 3}, {0, 1e15, -1e-15, 30, -40, 1}), normal({2, 3}, 23), normal({2}, 24)})
          .not_smooth(),
      sample<O>("nothing to add up", {}, {normal({2, 0}, 15), normal({3, 0}, 16), normal({3}, 17)}),
  };
  uint64_t seed = 100;
  for (const Shape& n : product_sizes()) {
    for (const bool bias : {false, true}) {
      list.push_back(sample<O>(to_text(n) + (bias ? " with bias" : ""), {},
                               {normal({n[0], n[1]}, ++seed), normal({n[2], n[1]}, ++seed),
                                bias ? normal({n[2]}, ++seed) : absent()}));
      list.back().derived = true;
    }
  }
  const Sample base =
      sample<O>("3 x 5 x 9", {}, {normal({3, 5}, 25), normal({9, 5}, 26), normal({9}, 27)});
  add_views(list, base, row_layouts(), {0, 1});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

}  // namespace tally::samples
