#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/layout.h"
#include "core/ops/view_ops.h"

namespace tally::samples {

inline std::vector<Sample> layout() {
  return {
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
}

}  // namespace tally::samples
