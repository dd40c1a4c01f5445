#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/elementwise.h"

namespace tally::samples {

// The shapes that matter to broadcasting; `shift` keeps b away from 0 where it divides.
template <class O>
void add_binary(std::vector<Sample>& list, double shift) {
  const auto b = [&](const Shape& s, uint64_t seed) { return normal(s, seed, 0.3, shift); };
  list.push_back(sample<O>("equal shapes", {}, {normal({3, 5}, 1), b({3, 5}, 2)}));
  list.push_back(sample<O>("both repeat", {}, {normal({3, 1, 5}, 3), b({4, 1}, 4)}));
  list.push_back(sample<O>("a row to all rows", {}, {normal({2, 3, 7}, 5), b({7}, 6)}));
  list.push_back(sample<O>("a scalar on the left", {}, {normal({}, 7), b({2, 3}, 8)}));
  list.push_back(sample<O>("one element", {}, {normal({1}, 9), b({1, 1}, 10)}));
  list.push_back(sample<O>("no elements", {}, {normal({3, 1}, 11), b({3, 0}, 12)}));
  list.push_back(sample<O>("wide rows", {}, {normal({3, 37}, 13), b({3, 37}, 14)}));
  list.push_back(sample<O>("a wide row to all rows", {}, {normal({3, 37}, 15), b({37}, 16)}));
  list.push_back(sample<O>("a column to all columns", {}, {normal({3, 1}, 17), b({3, 5}, 18)}));
  list.push_back(sample<O>("extreme values", {},
                           {values({6}, {0, 1e18, -1e18, 1e-18, 30, -1}),
                            values({6}, {1e-9, 1e9, -3, 1e-9, 40, 1e-3})})
                     .not_smooth());
  add_shapes(list, element_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, {}, {normal(s, seed), b(s, seed + 1)});
  });
  // One side repeats: a number, a row, a column; around a vector.
  for (const Shape& s : {Shape{1, 2}, {3, 8}, {2, 17}, {17, 3}, {2, 3, 9}}) {
    const std::string of = " of " + to_text(s);
    list.push_back(sample<O>("a number to all" + of, {}, {normal({1}, 23), b(s, 24)}));
    list.push_back(sample<O>("one a row" + of, {}, {normal(s, 25), b(s.with_last(1), 27)}));
    list.push_back(sample<O>("one a column" + of, {}, {normal({s[-1]}, 29), b(s, 30)}));
  }
  const Sample base = sample<O>("2 x 3 x 9", {}, {normal({2, 3, 9}, 19), b({2, 3, 9}, 20)});
  add_views(list, base, all_layouts());
  add_views(list, sample<O>("a row", {}, {normal({3, 9}, 21), b({9}, 22)}), all_layouts());
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large, Numbers::steps});
}

inline std::vector<Sample> elementwise() {
  std::vector<Sample> list;
  add_binary<ops::Add>(list, 0);
  add_binary<ops::Sub>(list, 0);
  add_binary<ops::Mul>(list, 0);
  add_binary<ops::Div>(list, 2);
  add_binary<ops::Maximum>(list, 0);
  add_binary<ops::Minimum>(list, 0);
  return list;
}

}  // namespace tally::samples
