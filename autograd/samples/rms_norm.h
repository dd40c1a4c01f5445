#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/rms_norm.h"

namespace tally::samples {

inline std::vector<Sample> rms_norm() {
  using O = ops::RMSNorm;
  std::vector<Sample> list = {
      sample<O>("5 rows of 7", {1e-5}, {normal({5, 7}, 1), normal({7}, 2)}),
      sample<O>("batch of 2 x 3 rows of 4", {1e-6}, {normal({2, 3, 4}, 3), normal({4}, 4, 1, 1)}),
      sample<O>("one element", {1e-3}, {normal({1, 1}, 5), normal({1}, 6)}),
      sample<O>("wide rows", {1e-5}, {normal({3, 131}, 7), normal({131}, 8)}),
      sample<O>("no weight", {1e-6}, {normal({2, 2, 5}, 12), absent()}),
      sample<O>("gain 1 + w", {1e-6, true}, {normal({3, 5}, 13), normal({5}, 14)}),
      sample<O>("rounded before the weight", {1e-6, false, true},
                {normal({3, 5}, 15), normal({5}, 16)}),
      sample<O>("no rows", {1e-5}, {normal({0, 4}, 9), normal({4}, 10)}),
      sample<O>("a row of zeros beside large numbers", {1e-6},
                {values({2, 3}, {0, 0, 0, 1e4, -3e4, 2e4}), normal({3}, 11)})
          .not_smooth(),
  };
  const O::Attrs plain{1e-3}, plus_one{1e-3, true}, rounded{1e-3, false, true};
  add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, plain, {normal(s, seed), normal({s[-1]}, seed + 1)});
  });
  add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("no weight " + of, plain, {normal(s, seed), absent()});
  });
  add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("gain 1 + w " + of, plus_one, {normal(s, seed), normal({s[-1]}, seed + 1)});
  });
  add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("rounded " + of, rounded, {normal(s, seed), normal({s[-1]}, seed + 1)});
  });
  const Sample base = sample<O>("3 x 9", {1e-5}, {normal({3, 9}, 17), normal({9}, 18)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

}  // namespace tally::samples
