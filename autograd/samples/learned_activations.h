#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/learned_swish.h"
#include "core/ops/sink_softmax.h"
#include "core/ops/xielu.h"

namespace tally::samples {

inline std::vector<Sample> learned_swish() {
  using O = ops::LearnedSwish;
  std::vector<Sample> list = {
      sample<O>("one beta", {}, {normal({5, 7}, 1, 2), values({}, {1.702})}),
      sample<O>("one a channel", {}, {normal({2, 3, 4}, 2, 2), normal({4}, 3)}),
      sample<O>("a negative beta", {}, {normal({3, 5}, 4), values({}, {-0.5})}),
      sample<O>("beta 0", {}, {normal({3, 5}, 5), values({}, {0})}).not_smooth(),
      sample<O>("a scalar", {}, {normal({}, 6), normal({}, 7)}),
      sample<O>("one element", {}, {normal({1}, 8), normal({1}, 9)}),
      sample<O>("no elements", {}, {normal({2, 0}, 10), normal({0}, 11)}),
      sample<O>("no rows", {}, {normal({0, 3}, 12), normal({3}, 13)}),
      sample<O>("wide rows", {}, {normal({3, 131}, 14), normal({131}, 15)}),
      sample<O>("at 0, small and large", {},
                {values({2, 6}, {0, -0.0, 1e-8, -1e-8, 20, -20, 100, -100, 700, -700, 1e20, -1e20}),
                 values({}, {1})})
          .not_smooth(),
  };
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("one beta " + of, {}, {normal(s, seed), values({}, {0.8})});
  });
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("a beta a channel " + of, {}, {normal(s, seed), normal({s[-1]}, seed + 1)});
  });
  const Sample base = sample<O>("3 x 9", {}, {normal({3, 9}, 16), normal({9}, 17)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

inline std::vector<Sample> xielu() {
  using O = ops::Xielu;
  const SampleInput p = values({}, {0.8}), n = values({}, {1.3});
  std::vector<Sample> list = {
      sample<O>("5 x 7", {}, {normal({5, 7}, 1, 2), p, n}),
      sample<O>("another slope, eps 0", {0.25, 0}, {normal({2, 3, 4}, 2, 2), p, n}),
      sample<O>("between eps and 0", {0.5, -0.5}, {normal({5, 7}, 9, 0.5), p, n}),
      sample<O>("a scalar", {}, {normal({}, 3), p, n}),
      sample<O>("one element", {}, {normal({1}, 4), normal({}, 5), normal({}, 6)}),
      sample<O>("no elements", {}, {normal({2, 0, 3}, 7), p, n}),
      sample<O>("wide rows", {}, {normal({3, 131}, 8), p, n}),
      sample<O>(
          "at 0, small and large", {},
          {values({2, 6}, {0, -0.0, 1e-8, -1e-8, 1e-3, -1e-3, -2e-6, -20, 100, -100, 1e8, -1e20}),
           p, n})
          .not_smooth(),
  };
  add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, {}, {normal(s, seed), p, n});
  });
  const Sample base = sample<O>("3 x 9", {}, {normal({3, 9}, 9), p, n});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  return list;
}

inline std::vector<Sample> sink_softmax() {
  using O = ops::SinkSoftmax;
  const auto mask = flags({3, 4}, {1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  std::vector<Sample> list = {
      sample<O>("off by one: no sink given", {}, {normal({5, 7}, 1), absent(), absent()}),
      sample<O>("a sink a head", {}, {normal({2, 3, 4, 5}, 2), absent(), normal({3, 1}, 3)}),
      sample<O>("a sink a row, scaled", {0.37}, {normal({3, 6}, 4), absent(), normal({3}, 5)}),
      sample<O>("one sink for all", {}, {normal({2, 2, 3}, 6), absent(), normal({}, 7)}),
      sample<O>("one row", {}, {normal({6}, 8), absent(), normal({}, 9)}),
      sample<O>("a mask, one row all masked", {0.5}, {normal({3, 4}, 10), mask, normal({3}, 11)}),
      sample<O>("a mask that repeats", {},
                {normal({2, 2, 3}, 12), flags({2, 1, 3}, {1, 0, 1, 0, 1, 1}), normal({2}, 13)}),
      sample<O>("one column", {}, {normal({3, 1}, 14), absent(), normal({1}, 15)}),
      sample<O>("wide rows", {}, {normal({2, 37}, 20), absent(), normal({2}, 21)}),
      sample<O>("no rows", {}, {normal({0, 4}, 16), absent(), normal({1}, 17)}),
      sample<O>("empty rows", {}, {normal({2, 0}, 18), absent(), normal({2}, 19)}),
      sample<O>("large numbers", {},
                {values({3, 3}, {1e4, 9999, -1e4, -1e4, -2e4, -3e4, 1, 2, 3}), absent(),
                 values({3}, {0, 0, 2e4})})
          .not_smooth(),
  };
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("one sink " + of, {0.6}, {normal(s, seed), absent(), normal({}, seed + 1)});
  });
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("off by one " + of, {}, {normal(s, seed), absent(), absent()});
  });
  const Sample base = sample<O>("3 x 9", {}, {normal({3, 9}, 22), absent(), normal({3}, 23)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 2);
  return list;
}

}  // namespace tally::samples
