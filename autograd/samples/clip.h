#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/clip.h"

namespace tally::samples {

// The norm of one tensor and the factor that follows.
inline Sample clip_norm(std::string name, double max_norm, double scale, SampleInput x) {
  Sample s;
  s.op = "clip";
  s.name = std::move(name);
  s.inputs = {constant(std::move(x))};
  s.apply = [=](const Sample::Tensors& in) -> Sample::Tensors {
    const auto r = ops::clip_global_norm(in, max_norm, scale);
    return {r.factor, r.norm};
  };
  return s;
}

inline std::vector<Sample> clip() {
  std::vector<Sample> list = {
      clip_norm("5 x 7, clipped", 1, 1, normal({5, 7}, 1)),
      clip_norm("below the limit", 100, 0.5, normal({131}, 2)),
      clip_norm("one element", 1, 1, normal({1}, 3)),
      clip_norm("no elements", 1, 1, normal({0, 3}, 4)),
      clip_norm("numbers whose squares overflow", 1, 1, values({3}, {1e20, -1e20, 3e20})),
  };
  add_shapes(list, element_shapes(), [](const std::string& of, const Shape& s, uint64_t seed) {
    return clip_norm(of, 0.5, 2, normal(s, seed));
  });
  add_numbers(list, clip_norm("3 x 9", 1, 1, normal({3, 9}, 5)), all_numbers());
  return list;
}

}  // namespace tally::samples
