#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/cast.h"

namespace tally::samples {

inline std::vector<Sample> cast() {
  using O = ops::Cast;
  std::vector<Sample> list = {
      sample<O>("3 x 5 to f64", {DType::f64}, {normal({3, 5}, 1)}),
      sample<O>("3 x 5 to f32", {DType::f32}, {normal({3, 5}, 2)}).not_smooth(),
      sample<O>("a scalar to bf16", {DType::bf16}, {normal({}, 3)}).not_smooth(),
      sample<O>("no elements to f64", {DType::f64}, {normal({0, 2}, 4)}),
      sample<O>("wide rows to f64", {DType::f64}, {normal({3, 37}, 5)}),
      sample<O>("wide rows to bf16", {DType::bf16}, {normal({3, 37}, 6)}).not_smooth(),
  };
  add_shapes(list, element_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return sample<O>("to f64 " + of, {DType::f64}, {normal(s, seed)});
  });
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const std::string name = "2 x 3 x 9 to " + to_text(dtype);
    const Sample base = sample<O>(name, {dtype}, {normal({2, 3, 9}, 7)}).not_smooth();
    add_views(list, base, all_layouts());
    add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  }
  return list;
}

}  // namespace tally::samples
