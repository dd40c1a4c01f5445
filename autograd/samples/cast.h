#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/cast.h"
#include "core/ops/stochastic_round.h"

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

/// The input is what is rounded, into a tensor of its own.
inline std::vector<Sample> stochastic_round() {
  using O = ops::StochasticRound;
  const auto rounding = [](std::string name, const SampleInput& x, const O::Attrs& a) {
    Sample s;
    s.op = O::name;
    s.name = std::move(name);
    s.narrow = false;
    s.inputs = {constant(x)};
    s.apply = [a](const Sample::Tensors& in) -> Sample::Tensors {
      check_defined(O::name, "x", in[0]);
      const bool proof = in[0].dtype() >= DType::dual;
      const Tensor y = empty(in[0].shape(), proof ? in[0].dtype() : DType::bf16, in[0].device());
      O::into(y, in[0], a);
      return {y};
    };
    s.smooth = false;
    return s;
  };
  std::vector<Sample> list = {
      rounding("3 x 5", normal({3, 5}, 1), {1, 2, 3}),
      rounding("wide rows", normal({3, 131}, 2), {7, 0, 1}),
      rounding("a scalar", normal({}, 3), {}),
      rounding("one element", normal({1}, 4), {}),
      rounding("no elements", normal({0, 3}, 5), {}),
      rounding("extreme values", values({7}, {0, 1e30, -1e30, 1e-30, -20, 1, -0.5}), {3, 1, 9}),
  };
  add_shapes(list, element_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
    return rounding("of " + of, normal(s, seed), {seed, seed, 1});
  });
  Sample base = rounding("2 x 3 x 9", normal({2, 3, 9}, 6), {5, 6, 7});
  add_views(list, base, all_layouts());
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  return list;
}

}  // namespace tally::samples
