#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/relative_bias.h"
#include "core/ops/relative_shift.h"

namespace tally::samples {

inline std::vector<Sample> relative_bias() {
  using O = ops::RelativeBias;
  std::vector<Sample> list = {
      sample<O>("one side, as many queries as keys", {6, 6, false, 12}, {normal({8, 3}, 1)}),
      sample<O>("both sides, more keys than queries", {3, 9, true, 12}, {normal({8, 2}, 2)}),
      sample<O>("one query behind a cache", {1, 40, false, 16}, {normal({4, 2}, 3)}),
      sample<O>("both sides, more queries than keys", {7, 2, true, 3}, {normal({4, 1}, 4)}),
      sample<O>("the fewest buckets", {4, 4, false, 2}, {normal({2, 1}, 5)}),
      sample<O>("no queries", {0, 5, false, 128}, {normal({32, 2}, 6)}),
      sample<O>("many heads", {3, 4, false, 16}, {normal({8, 19}, 10)}),
      sample<O>("extreme values", {2, 3, false, 4},
                {values({4, 2}, {0, 1e30, -1e30, 1e-30, -20, 30, 1, -1})}),
      sample<O>("no keys", {3, 0, true, 128}, {normal({32, 2}, 7)}),
      sample<O>("no heads", {3, 3, false, 128}, {normal({32, 0}, 8)}),
      sample<O>("beyond the largest distance", {2, 200, false, 128}, {normal({32, 1}, 9)}),
  };
  // (queries, keys) on one side and on both.
  for (const bool both : {false, true}) {
    for (const Shape& n : {Shape{1, 1}, {1, 9}, {2, 3}, {3, 17}, {9, 9}, {17, 2}}) {
      for (const int64_t heads : {1, 3}) {
        const std::string name = to_text(n) + ", heads " + to_text(heads) + (both ? ", both" : "");
        list.push_back(sample<O>(name, {n[0], n[1], both, 10}, {normal({8, heads}, 11)}));
        list.back().derived = true;
      }
    }
  }
  const Sample base = sample<O>("3 x 9, 3 heads", {3, 9, true, 10}, {normal({8, 3}, 12)});
  add_views(list, base, row_layouts());
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  return list;
}

inline std::vector<Sample> relative_shift() {
  using O = ops::RelativeShift;
  std::vector<Sample> list = {
      sample<O>("as many queries as keys", {4}, {normal({2, 3, 4, 4}, 1)}),
      sample<O>("behind a cache, more distances than keys", {5}, {normal({2, 3, 7}, 2)}),
      sample<O>("one query", {6}, {normal({1, 6}, 3)}),
      sample<O>("one of one", {1}, {normal({1, 1, 1}, 4)}),
      sample<O>("no queries", {3}, {normal({2, 0, 4}, 5)}),
      sample<O>("extreme values", {2}, {values({2, 2}, {0, 1e30, -1e30, -20})}),
      sample<O>("nothing in front", {3}, {normal({0, 2, 4}, 6)}),
      sample<O>("no keys", {0}, {normal({2, 0, 3}, 7)}),
      sample<O>("wide", {67}, {normal({3, 70}, 8)}),
  };
  // (queries, distances, keys) behind one axis and two.
  for (const Shape& n :
       {Shape{1, 1, 1}, {1, 9, 2}, {2, 9, 8}, {3, 17, 9}, {9, 9, 9}, {2, 33, 17}}) {
    for (const bool heads : {false, true}) {
      const Shape s = heads ? Shape{2, 3, n[0], n[1]} : Shape{2, n[0], n[1]};
      list.push_back(sample<O>(to_text(n) + (heads ? ", heads" : ""), {n[2]}, {normal(s, 9)}));
      list.back().derived = true;
    }
  }
  const Sample base = sample<O>("3 x 9 to 7", {7}, {normal({3, 9}, 10)});
  add_views(list, base, row_layouts());
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  return list;
}

}  // namespace tally::samples
