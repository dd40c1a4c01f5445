#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/softmax.h"

namespace tally::samples {

template <class O>
void add_softmax(std::vector<Sample>& list) {
  list.push_back(sample<O>("5 rows of 7", {}, {normal({5, 7}, 1), absent()}));
  list.push_back(sample<O>("scaled, 2 x 3 rows", {0.37}, {normal({2, 3, 5}, 2), absent()}));
  list.push_back(sample<O>("two vectors and a tail", {0.7}, {normal({3, 37}, 8), absent()}));
  list.push_back(sample<O>("one column", {}, {normal({3, 1}, 3), absent()}));
  list.push_back(sample<O>("no rows", {2}, {normal({0, 4}, 4), absent()}));
  list.push_back(sample<O>("empty rows", {}, {normal({2, 0}, 5), absent()}));
  list.push_back(
      sample<O>("large numbers", {}, {values({2, 3}, {1e4, 9999, -1e4, -1e300, 0, 1e4}), absent()})
          .not_smooth());
  add_shapes(list, row_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>(of, {0.6}, {normal(s, seed), absent()});
  });
  const Sample base = sample<O>("3 x 9", {}, {normal({3, 9}, 11), absent()});
  add_views(list, base, row_layouts());
  // Not large ones: a row that is one probability of 1 has slopes that rounding swallows.
  add_numbers(list, base,
              {Numbers::zeros, Numbers::equal, Numbers::tiny, Numbers::outlier, Numbers::steps});
  for (const Shape& seen : {Shape{1}, {9}, {3, 1}, {2, 1, 1}, {2, 3, 9}}) {
    SampleInput mask = indices(seen, 12, 2);
    mask.dtype = DType::u8;
    mask.values.back() = 1;
    list.push_back(
        sample<O>("2 x 3 x 9 under a mask " + to_text(seen), {0.8}, {normal({2, 3, 9}, 13), mask})
            .not_smooth());
  }
}

inline std::vector<Sample> softmax() {
  using O = ops::Softmax;
  std::vector<Sample> list;
  add_softmax<O>(list);
  const auto mask = flags({3, 4}, {1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  list.push_back(sample<O>("a mask, one row all masked", {0.5}, {normal({3, 4}, 6), mask}));
  list.push_back(sample<O>("a mask that repeats", {},
                           {normal({2, 2, 3}, 7), flags({2, 1, 3}, {1, 0, 1, 0, 1, 1})}));
  list.push_back(
      sample<O>("a mask of rows", {}, {normal({2, 2, 3}, 10), flags({2, 1, 1}, {1, 0})}));
  std::vector<double> some(2 * 37);
  for (size_t i = 0; i < some.size(); ++i) some[i] = i % 3 != 1;
  list.push_back(sample<O>("a mask of long rows", {}, {normal({2, 37}, 9), flags({2, 37}, some)}));
  return list;
}

inline std::vector<Sample> log_softmax() {
  using O = ops::LogSoftmax;
  std::vector<Sample> list;
  add_softmax<O>(list);
  // What the mask forbids is -infinity, which has no differences.
  list.push_back(sample<O>("a mask, one row all masked", {0.5},
                           {normal({3, 4}, 6), flags({3, 4}, {1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0})})
                     .not_smooth());
  list.push_back(sample<O>("a mask of rows", {}, {normal({2, 2, 3}, 7), flags({2, 1, 1}, {1, 0})})
                     .not_smooth());
  return list;
}

}  // namespace tally::samples
