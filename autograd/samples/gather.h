#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/gather.h"

namespace tally::samples {

inline std::vector<Sample> gather() {
  using O = ops::Gather;
  std::vector<Sample> list = {
      sample<O>("along the last axis", {-1}, {normal({3, 6}, 1), indices({3, 4}, 2, 6)}),
      sample<O>("along the first axis, fewer columns", {0},
                {normal({4, 5}, 3), indices({7, 3}, 4, 4)}),
      sample<O>("one element", {0}, {normal({1}, 5), indices({1}, {0})}),
      sample<O>("no indices", {1}, {normal({3, 6}, 6), indices({3, 0}, 7, 6)}),
      sample<O>("wide rows", {1}, {normal({2, 37}, 8), indices({2, 35}, 9, 37)}),
      sample<O>("extreme values, one asked for again", {0},
                {values({4}, {0, 1e30, -1e30, -20}), indices({5}, {1, 1, 3, 0, 2})}),
  };
  for (const int axis : {0, 1, 2}) {
    for (const int64_t n : {1, 2, 9, 17}) {
      Shape s{2, 3, 5}, chosen = s;
      s[axis] = n, chosen[axis] = 4;
      const std::string name = "4 of " + to_text(n) + " along axis " + to_text(axis);
      const uint64_t seed = 20 + static_cast<uint64_t>(20 * axis + n);
      list.push_back(sample<O>(name, {axis}, {normal(s, seed), indices(chosen, seed + 200, n)}));
      if (n == 9) add_views(list, list.back(), all_layouts(), {0});
    }
  }
  return list;
}

inline std::vector<Sample> index_select() {
  using O = ops::IndexSelect;
  std::vector<Sample> list = {
      sample<O>("rows, repeated", {0}, {normal({5, 3}, 1), indices({6}, {0, 4, 4, 2, 4, 0})}),
      sample<O>("the middle axis", {1}, {normal({2, 3, 4}, 2), indices({2}, {2, 0})}),
      sample<O>("the last axis", {-1}, {normal({2, 3}, 3), indices({5}, 4, 3)}),
      sample<O>("no indices", {0}, {normal({5, 3}, 5), indices({0}, {})}),
      sample<O>("one of one", {0}, {normal({1, 3}, 6), indices({1}, {0})}),
      sample<O>("wide rows", {0}, {normal({5, 37}, 7), indices({3}, {4, 0, 4})}),
      sample<O>("extreme values", {0}, {values({4}, {0, 1e30, -1e30, -20}), indices({2}, {1, 3})}),
  };
  for (const int axis : {0, 1, 2}) {
    for (const int64_t n : {1, 2, 9, 17}) {
      Shape s{2, 3, 5};
      s[axis] = n;
      const std::string name = "4 of " + to_text(n) + " along axis " + to_text(axis);
      const uint64_t seed = 20 + static_cast<uint64_t>(20 * axis + n);
      list.push_back(sample<O>(name, {axis}, {normal(s, seed), indices({4}, seed + 200, n)}));
      if (n == 9) add_views(list, list.back(), all_layouts(), {0});
    }
  }
  return list;
}

}  // namespace tally::samples
