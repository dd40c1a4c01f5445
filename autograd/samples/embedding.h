#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/embedding.h"

namespace tally::samples {

inline std::vector<Sample> embedding() {
  using O = ops::Embedding;
  std::vector<Sample> list = {
      sample<O>("batch of 2 x 3 ids", {}, {indices({2, 3}, 1, 7), normal({7, 5}, 2)}),
      sample<O>("an id that repeats", {}, {indices({5}, {1, 1, 3, 1, 0}), normal({4, 2}, 3)}),
      sample<O>("scaled by sqrt(D)", {2.23606797749979},
                {indices({2, 4}, 4, 7), normal({7, 5}, 5)}),
      sample<O>("one row of one", {}, {indices({1}, {0}), normal({1, 1}, 6)}),
      sample<O>("wide rows", {}, {indices({9}, 7, 40), normal({40, 131}, 8)}),
      sample<O>("no ids", {}, {indices({0}, {}), normal({4, 2}, 9)}),
      sample<O>("rows of no width", {}, {indices({3}, 10, 4), normal({4, 0}, 11)}),
      sample<O>("one id for all, large numbers", {},
                {indices({3}, {2, 2, 2}), values({3, 2}, {1, 2, 3, 4, 1e30, -1e30})})
          .not_smooth(),
      sample<O>("a padding id", {1, 3}, {indices({5}, {1, 1, 0, 2, 0}), normal({4, 3}, 12)}),
  };
  for (const int64_t width : {1, 2, 7, 8, 9, 16, 17, 33, 65}) {
    for (const int64_t ids : {1, 3}) {
      const std::string name = to_text(ids) + " ids of width " + to_text(width);
      const auto seed = static_cast<uint64_t>(10 * width + ids);
      list.push_back(
          sample<O>(name, {0.5}, {indices({ids}, seed, 5), normal({5, width}, seed + 1)}));
    }
  }
  const Sample base =
      sample<O>("2 x 3 of 5 x 9", {1.5}, {indices({2, 3}, {0, 4, 2, 2, 1, 0}), normal({5, 9}, 13)});
  add_views(list, base, row_layouts(), {1});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large}, 1);
  return list;
}

}  // namespace tally::samples
