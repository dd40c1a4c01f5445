#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/cast.h"

namespace tally::samples {

inline std::vector<Sample> cast() {
  using O = ops::Cast;
  return {
      sample<O>("3 x 5 to f64", {DType::f64}, {normal({3, 5}, 1)}),
      sample<O>("3 x 5 to f32", {DType::f32}, {normal({3, 5}, 2)}).not_smooth(),
      sample<O>("a scalar to bf16", {DType::bf16}, {normal({}, 3)}).not_smooth(),
      sample<O>("no elements to f64", {DType::f64}, {normal({0, 2}, 4)}),
      sample<O>("wide rows to f64", {DType::f64}, {normal({3, 37}, 5)}),
      sample<O>("wide rows to bf16", {DType::bf16}, {normal({3, 37}, 6)}).not_smooth(),
  };
}

}  // namespace tally::samples
