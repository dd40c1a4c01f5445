#pragma once
#include "autograd/functional.h"
#include "autograd/proof/sample.h"
#include "core/ops/selection_bias.h"

namespace tally::samples {

// Loads that are there, what tokens choose, and the bias that follows.
inline Sample selection_step(std::string name, double rate, SampleInput bias, SampleInput load,
                             SampleInput chosen) {
  Sample s;
  s.op = ops::SelectionBias::name;
  s.name = std::move(name);
  s.inputs = {constant(std::move(bias)), accumulating(constant(std::move(load))),
              std::move(chosen)};
  s.apply = [rate](const Sample::Tensors& in) -> Sample::Tensors {
    for (const Tensor& t : in) check_defined(ops::SelectionBias::name, "an input", t);
    const Tensor moved = copy(in[0]), sum = copy(in[1]);
    ops::SelectionBias::count(in[2], sum, moved.dtype());
    const Tensor loads = copy(sum);
    ops::SelectionBias::update(moved, sum, rate);
    return {moved, loads, sum};
  };
  return std::move(s).not_smooth();
}

inline std::vector<Sample> selection_bias() {
  return {
      selection_step("5 tokens, 2 of 4 experts", 0.001, normal({4}, 1), values({4}, {0, 0, 0, 0}),
                     indices({5, 2}, 2, 4)),
      selection_step("a second micro-batch", 0.01, normal({3}, 3), values({3}, {4, 1, 4}),
                     indices({2, 2, 1}, {1, 1, 1, 0})),
      selection_step("one expert", 0.1, normal({1}, 4), values({1}, {0}),
                     indices({3, 1}, {0, 0, 0})),
      selection_step("no tokens", 0.1, normal({3}, 5), values({3}, {0, 0, 0}),
                     indices({0, 2}, std::vector<double>{})),
      selection_step("no experts", 0.1, normal({0}, 6), values({0}, {}),
                     indices({0, 1}, std::vector<double>{})),
      selection_step("many experts", 0.001, normal({37}, 7, 10), normal({37}, 8),
                     indices({19, 3}, 9, 37)),
  };
}

}  // namespace tally::samples
