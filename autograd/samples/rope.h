#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/rope.h"

namespace tally::samples {

inline std::vector<Sample> rope() {
  using O = ops::Rope;
  constexpr auto half = ops::RotaryPairs::half_split, inter = ops::RotaryPairs::interleaved;
  const auto table = [](const Shape& shape, uint64_t seed) {
    return accumulating(constant(normal(shape, seed)));
  };
  return {
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
}

}  // namespace tally::samples
