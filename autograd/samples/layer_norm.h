#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/layer_norm.h"

namespace tally::samples {

inline std::vector<Sample> layer_norm() {
  using O = ops::LayerNorm;
  std::vector<Sample> list = {
      sample<O>("5 rows of 7", {}, {normal({5, 7}, 1), normal({7}, 2), normal({7}, 3)}),
      sample<O>("no bias", {}, {normal({2, 3, 4}, 4), normal({4}, 5, 1, 1), absent()}),
      sample<O>("no parameters", {1e-6}, {normal({3, 6}, 6), absent(), absent()}),
      sample<O>("gain 1 + w", {1e-5, true}, {normal({3, 5}, 7), normal({5}, 8), normal({5}, 9)}),
      sample<O>("wide rows", {}, {normal({3, 131}, 10), normal({131}, 11), normal({131}, 12)}),
      sample<O>("rows of one", {1e-3}, {normal({3, 1}, 13), normal({1}, 14), normal({1}, 15)}),
      sample<O>("one row", {}, {normal({9}, 16), normal({9}, 17), normal({9}, 18)}),
      sample<O>("no rows", {}, {normal({0, 4}, 19), normal({4}, 20), normal({4}, 21)}),
      sample<O>("a mean far from zero", {},
                {normal({4, 8}, 22, 1, 50), normal({8}, 23), normal({8}, 24)}),
      sample<O>("a row of equals beside large numbers", {},
                {values({2, 3}, {7, 7, 7, 1e4, -3e4, 2e4}), normal({3}, 25), normal({3}, 26)})
          .not_smooth(),
  };
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, {0.1},
                     {normal(s, seed), normal({s[-1]}, seed + 1), normal({s[-1]}, seed + 2)});
  });
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("no parameters " + of, {0.1}, {normal(s, seed), absent(), absent()});
  });
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("gain 1 + w, no bias " + of, {0.1, true},
                     {normal(s, seed), normal({s[-1]}, seed + 1), absent()});
  });
  const Sample base =
      sample<O>("3 x 9", {}, {normal({3, 9}, 27), normal({9}, 28), normal({9}, 29)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

}  // namespace tally::samples
