#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/where.h"

namespace tally::samples {

inline std::vector<Sample> where() {
  using O = ops::Where;
  std::vector<Sample> list = {
      sample<O>("equal shapes", {},
                {flags({2, 3}, {1, 0, 0, 1, 1, 0}), normal({2, 3}, 1), normal({2, 3}, 2)}),
      sample<O>("all repeat", {},
                {flags({2, 1, 1}, {1, 0}), normal({3, 1}, 3), normal({1, 1, 5}, 4)}),
      sample<O>("a row and a scalar", {},
                {flags({4}, {0, 1, 1, 0}), normal({3, 4}, 5), normal({}, 6)}),
      sample<O>("no elements", {}, {flags({1}, {1}), normal({0, 3}, 7), normal({3}, 8)}),
      sample<O>("wide rows", {}, {flags({2, 1}, {1, 0}), normal({2, 37}, 9), normal({37}, 10)}),
      sample<O>(
          "extreme values", {},
          {flags({3}, {1, 0, 1}), values({3}, {0, 1e30, -1e30}), values({3}, {20, -20, 1e-30})}),
  };
  add_shapes(list, element_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    SampleInput yes = indices(s, seed + 2, 2);
    yes.dtype = DType::u8;
    return sample<O>(of, {}, {yes, normal(s, seed), normal(s, seed + 1)});
  });
  SampleInput yes = indices({2, 3, 9}, 30, 2);
  yes.dtype = DType::u8;
  const Sample base =
      sample<O>("2 x 3 x 9", {}, {yes, normal({2, 3, 9}, 31), normal({2, 3, 9}, 32)});
  add_views(list, base, all_layouts());
  return list;
}

}  // namespace tally::samples
