#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/concat.h"

namespace tally::samples {

inline std::vector<Sample> concat() {
  using O = ops::Concat;
  const auto none = absent();
  std::vector<Sample> list = {
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
  for (const int axis : {0, 1, 2}) {
    for (const int64_t n : {0, 1, 9}) {
      Shape a{2, 3, 5}, b = a;
      a[axis] = n, b[axis] = 17;
      const std::string name = to_text(n) + " and 17 along axis " + to_text(axis);
      const uint64_t seed = 20 + static_cast<uint64_t>(10 * axis + n);
      list.push_back(
          sample<O>(name, {axis},
                    {normal(a, seed), normal(b, seed + 100), none, none, none, none, none, none}));
      if (n == 9) add_views(list, list.back(), all_layouts());
    }
  }
  return list;
}

inline std::vector<Sample> split() {
  using O = ops::Split;
  std::vector<Sample> list = {
      sample<O>("2, 1 and 3 of the last axis", {-1, 3, {2, 1, 3}}, {normal({2, 3, 6}, 1)}),
      sample<O>("rows", {0, 2, {1, 4}}, {normal({5, 3}, 2)}),
      sample<O>("an empty part", {0, 2, {0, 2}}, {normal({2, 2}, 3)}),
      sample<O>("all of it empty", {0, 2, {0, 0}}, {normal({0, 3}, 4)}),
      sample<O>("single columns", {1, 2, {1, 1}}, {normal({3, 2}, 5)}),
      sample<O>("one row in wide parts", {-1, 2, {19, 20}}, {normal({1, 39}, 6)}),
      sample<O>("extreme values", {0, 2, {2, 3}}, {values({5}, {0, 1e30, -1e30, 1e-30, -20})}),
  };
  for (const int axis : {0, 1, 2}) {
    for (const int64_t n : {0, 1, 9}) {
      Shape s{2, 3, 5};
      s[axis] = n + 17;
      const std::string name = to_text(n) + " and 17 along axis " + to_text(axis);
      list.push_back(sample<O>(name, {axis, 2, {n, 17}},
                               {normal(s, 20 + static_cast<uint64_t>(10 * axis + n))}));
      if (n == 9) add_views(list, list.back(), all_layouts());
    }
  }
  return list;
}

}  // namespace tally::samples
