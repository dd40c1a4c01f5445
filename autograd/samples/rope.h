#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/rope.h"

namespace tally::samples {

inline std::vector<Sample> rope() {
  using O = ops::Rope;
  constexpr auto half = ops::RotaryPairs::half_split, inter = ops::RotaryPairs::interleaved;
  const auto table = [](const Shape& shape, uint64_t seed) {
    return accumulating(constant(normal(shape, seed)));
  };
  std::vector<Sample> list = {
      sample<O>("half-split, whole head", {half, 0},
                {normal({2, 3, 2, 6}, 1), table({3, 6}, 2), absent()}),
      sample<O>("interleaved, part of the head, behind a cache", {inter, 4},
                {normal({1, 3, 3, 7}, 3), table({9, 4}, 4), absent()}),
      sample<O>("half-split, part of the head", {half, 1},
                {normal({2, 2, 1, 5}, 5), table({3, 2}, 6), absent()}),
      sample<O>("positions of their own, one twice", {inter, 0},
                {normal({2, 2, 2, 4}, 7), table({5, 4}, 8), indices({2, 2}, {4, 0, 4, 2})}),
      sample<O>("no tokens", {half, 0}, {normal({2, 0, 2, 4}, 9), table({3, 4}, 10), absent()}),
      sample<O>("extreme values", {half, 0},
                {values({1, 1, 2, 4}, {0, 1e15, -1e15, 1e-15, -20, 30, 1, -1}), table({1, 4}, 15),
                 absent()})
          .not_smooth(),
      sample<O>("no heads", {half, 0}, {normal({2, 3, 0, 4}, 11), table({3, 4}, 12), absent()}),
      sample<O>("wide head", {half, 0}, {normal({1, 2, 1, 70}, 13), table({2, 66}, 14), absent()}),
  };
  // (tokens, heads, head, turned part of it), each order of pairs, positions in order or given.
  uint64_t seed = 100;
  for (const auto pairs : {half, inter}) {
    for (const Shape& n : {Shape{1, 1, 2, 2},
                           {3, 2, 4, 4},
                           {2, 1, 16, 16},
                           {2, 3, 9, 8},
                           {1, 2, 18, 6},
                           {5, 1, 34, 34}}) {
      for (const bool given : {false, true}) {
        const std::string name = std::string(pairs == half ? "half-split " : "interleaved ") +
                                 to_text(n) + (given ? ", given positions" : "");
        const int64_t first = given ? 0 : 2;
        list.push_back(
            sample<O>(name, {pairs, first},
                      {normal({2, n[0], n[1], n[2]}, ++seed), table({n[0] + 3, n[3]}, ++seed),
                       given ? indices({2, n[0]}, ++seed, n[0] + 3) : absent()}));
        list.back().derived = true;
      }
    }
    const std::string name =
        pairs == half ? "half-split 2 x 3 x 2 x 9" : "interleaved 2 x 3 x 2 x 9";
    const Sample base =
        sample<O>(name, {pairs, 1}, {normal({2, 3, 2, 9}, 16), table({4, 6}, 17), absent()});
    add_views(list, base, all_layouts(), {0});
    add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  }
  return list;
}

}  // namespace tally::samples
