#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/layout.h"
#include "core/ops/view_ops.h"

namespace tally::samples {

inline std::vector<Sample> layout() {
  std::vector<Sample> list = {
      sample<ops::Copy>("2 x 3 x 5", {}, {normal({2, 3, 5}, 1)}),
      sample<ops::Copy>("a scalar", {}, {normal({}, 2)}),
      sample<ops::Copy>("no elements", {}, {normal({0, 3}, 3)}),
      sample<ops::Copy>("wide rows", {}, {normal({3, 37}, 16)}),
      sample<ops::Copy>("extreme values", {}, {values({5}, {0, 1e30, -1e30, 1e-30, -20})}),
      sample<ops::Reshape>("a row to a column", {{-1, 1}}, {normal({37}, 17)}),
      sample<ops::Reshape>("a column to a row", {{3}}, {normal({3, 1}, 25)}),
      sample<ops::Reshape>("extreme values", {{2, 2}}, {values({4}, {0, 1e30, -1e30, -20})}),
      sample<ops::Reshape>("2 x 6 to 3 x 4", {{3, -1}}, {normal({2, 6}, 4)}),
      sample<ops::Reshape>("no elements", {{-1, 3}}, {normal({0, 3}, 5)}),
      sample<ops::Transpose>("the last two axes", {}, {normal({2, 3, 5}, 6)}),
      sample<ops::Transpose>("the first and the last", {0, -1}, {normal({2, 1, 7}, 7)}),
      sample<ops::Transpose>("several tiles", {}, {normal({18, 21}, 15)}),
      sample<ops::Permute>("four axes", {{2, 0, -3, 3}}, {normal({2, 3, 4, 5}, 8)}),
      sample<ops::Transpose>("no elements", {}, {normal({3, 0}, 18)}),
      sample<ops::Transpose>("extreme values", {}, {values({2, 2}, {0, 1e30, -1e30, -20})}),
      sample<ops::Permute>("no elements", {{1, 0}}, {normal({0, 3}, 19)}),
      sample<ops::Permute>("an axis of one", {{2, 1, 0}}, {normal({37, 1, 3}, 20)}),
      sample<ops::Permute>("extreme values", {{1, 0}}, {values({2, 2}, {0, 1e30, -1e30, -20})}),
      sample<ops::Narrow>("of no rows", {1, 0, 2}, {normal({0, 3}, 21)}),
      sample<ops::Narrow>("a wide row of one", {1, 3, 19}, {normal({1, 37}, 22)}),
      sample<ops::Narrow>("extreme values", {0, 1, 3}, {values({5}, {0, 1e30, -1e30, 1e-30, -20})}),
      sample<ops::Narrow>("every second column", {1, 1, 3, 2}, {normal({3, 7}, 9)}),
      sample<ops::Narrow>("the last row", {0, 4, 1}, {normal({5, 3}, 10)}),
      sample<ops::Narrow>("nothing", {-1, 2, 0}, {normal({3, 4}, 11)}),
      sample<ops::Expand>("new axes and a repeated one", {{2, 3, 4}}, {normal({3, 1}, 12)}),
      sample<ops::Expand>("a scalar to 2 x 3", {{2, 3}}, {normal({}, 13)}),
      sample<ops::Expand>("no columns", {{2, 0}}, {normal({1, 0}, 23)}),
      sample<ops::Expand>("a wide row", {{3, 37}}, {normal({37}, 24)}),
      sample<ops::Expand>("extreme values", {{2, 4}}, {values({4}, {0, 1e30, -1e30, -20})}),
      sample<ops::Expand>("to no elements", {{0, 3}}, {normal({1, 3}, 14)}),
  };
  add_shapes(list, element_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<ops::Copy>(of, {}, {normal(s, seed)});
  });
  const SampleInput x = normal({2, 3, 9}, 30);
  add_views(list, sample<ops::Copy>("2 x 3 x 9", {}, {x}), all_layouts());
  add_views(list, sample<ops::Transpose>("2 x 3 x 9", {}, {x}), all_layouts());
  add_views(list, sample<ops::Transpose>("2 x 3 x 9, the first two axes", {0, 1}, {x}),
            all_layouts());
  add_views(list, sample<ops::Permute>("2 x 3 x 9", {{2, 0, 1}}, {x}), all_layouts());
  // An axis that is split is a view, however it lies.
  add_views(list, sample<ops::Reshape>("2 x 3 x 9 to 2 x 3 x 3 x 3", {{2, 3, 3, 3}}, {x}),
            all_layouts());
  add_views(list, sample<ops::Expand>("4 x 2 x 3 x 9", {{4, 2, 3, 9}}, {x}), all_layouts());
  for (const int axis : {0, 1, 2}) {
    for (const int64_t step : {1, 2}) {
      const int64_t count = (x.shape[axis] - 1) / step;
      const std::string name =
          to_text(count) + " of axis " + to_text(axis) + ", step " + to_text(step);
      add_views(list, sample<ops::Narrow>(name, {axis, 1, count, step}, {x}), all_layouts());
    }
  }
  for (const Shape& order : {Shape{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
    list.push_back(
        sample<ops::Permute>("axes " + to_text(order), {order}, {normal({2, 3, 17}, 31)}));
  for (const Shape& s : {Shape{54}, {6, 9}, {2, 27}, {3, 2, 9}, {1, 54, 1}, {2, 3, 3, 3}})
    list.push_back(sample<ops::Reshape>("2 x 3 x 9 to " + to_text(s), {s}, {x}));
  for (const Shape& s : {Shape{1}, {3, 1}, {1, 17}, {2, 1, 17}, {2, 3, 17}, {0, 3, 17}})
    list.push_back(sample<ops::Expand>("to 2 x 3 x 17 of " + to_text(s),
                                       {{s.numel() == 0 ? 0 : 2, 3, 17}}, {normal(s, 32)}));
  return list;
}

}  // namespace tally::samples
