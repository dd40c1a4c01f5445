#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/residual_add.h"

namespace tally::samples {

inline std::vector<Sample> residual_add() {
  using O = ops::ResidualAdd;
  std::vector<Sample> list = {
      sample<O>("scaled", {0.22}, {normal({5, 7}, 1), normal({5, 7}, 2), absent()}),
      sample<O>("one learned number", {1},
                {normal({2, 3, 4}, 3), normal({2, 3, 4}, 4), normal({}, 5)}),
      sample<O>("a learned row, scaled", {0.5},
                {normal({2, 3, 5}, 6), normal({2, 3, 5}, 7), normal({5}, 8)}),
      sample<O>("sequences left out, p 0.5", {1, 0.5, 1, 4},
                {normal({6, 2, 3}, 9), normal({6, 2, 3}, 10), absent()}),
      sample<O>("sequences left out, a learned row", {2, 0.3, 7, 1},
                {normal({5, 2, 3}, 11), normal({5, 2, 3}, 12), normal({3}, 13)}),
      sample<O>("all left out", {1, 1, 1, 0},
                {normal({3, 4}, 14), normal({3, 4}, 15), normal({}, 16)}),
      sample<O>("one axis", {3}, {normal({4}, 17), normal({4}, 18), normal({4}, 19)}),
      sample<O>("wide rows", {1}, {normal({3, 131}, 20), normal({3, 131}, 21), normal({131}, 22)}),
      sample<O>("many rows", {1}, {normal({37, 2}, 23), normal({37, 2}, 24), normal({}, 25)}),
      sample<O>("extreme values", {1},
                {values({5}, {0, 1e30, -1e30, 1e-30, -20}),
                 values({5}, {1e30, 0, -1e30, 1e-30, 20}), absent()})
          .not_smooth(),
      sample<O>("no rows", {2}, {normal({0, 3}, 26), normal({0, 3}, 27), normal({3}, 28)}),
      sample<O>("no width", {2}, {normal({3, 0}, 29), normal({3, 0}, 30), normal({}, 31)}),
  };
  // Every form of the gain, with and without sequences left out.
  for (const double p : {0.0, 0.4}) {
    const std::string some = p > 0 ? ", some left out, " : ", ";
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      const O::Attrs a{0.5, p, seed, 1};
      return sample<O>("scaled" + some + of, a, {normal(s, seed), normal(s, seed + 1), absent()});
    });
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      return sample<O>("a learned row" + some + of, {1, p, seed, 2},
                       {normal(s, seed), normal(s, seed + 1), normal({s[-1]}, seed + 2)});
    });
  }
  const Sample base =
      sample<O>("3 x 9", {0.7}, {normal({3, 9}, 32), normal({3, 9}, 33), normal({9}, 34)});
  add_views(list, base, row_layouts(), {0, 1});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  return list;
}

}  // namespace tally::samples
