#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/adamw_update.h"

namespace tally::samples {

// A step on a fresh parameter and fresh moments: the input is the gradient.
inline Sample adamw_step(std::string name, const ops::AdamWUpdate::Attrs& attrs, const Shape& shape,
                         bool scaled, uint64_t seed) {
  Sample s;
  s.op = ops::AdamWUpdate::name;
  s.name = std::move(name);
  s.narrow = false;
  s.inputs = {constant(normal(shape, seed))};
  s.apply = [=](const Sample::Tensors& in) -> Sample::Tensors {
    check_defined(ops::AdamWUpdate::name, "the gradient", in[0]);
    const Device device = in[0].device();
    const DType dtype = in[0].dtype(), wide = acc_dtype(dtype);
    SampleInput squares = normal(shape, seed + 3, 0.1);
    for (double& v : squares.values) v *= v;
    const Tensor w = make_input(normal(shape, seed + 1), dtype, device);
    const Tensor m = make_input(normal(shape, seed + 2, 0.1), wide, device);
    const Tensor v = make_input(squares, wide, device);
    const Tensor scale = scaled ? make_input(values({1}, {0.25}), wide, device) : Tensor();
    ops::AdamWUpdate::into(w, m, v, in[0], scale, attrs);
    return {w, m, v};
  };
  return s;
}

// Gradients that a step must stand.
inline Sample adamw_far() {
  Sample s = adamw_step("extreme values", {}, {5}, false, 60);
  s.inputs = {constant(values({5}, {0, 1e15, -1e15, 1e-20, -30}))};
  return s;
}

inline std::vector<Sample> adamw_update() {
  std::vector<Sample> list = {
      adamw_step("5 x 7", {}, {5, 7}, false, 10),
      adamw_step("scaled, step 1000", {1e-2, 0.9, 0.95, 1e-8, 0.1, 1000}, {33}, true, 20),
      adamw_step("no decay, no momentum", {1e-2, 0, 0.9, 1e-8, 0, 3}, {2, 3, 4}, true, 30),
      adamw_step("one element", {}, {1}, true, 40),
      adamw_step("no elements", {}, {0, 3}, true, 50),
      adamw_far(),
  };
  uint64_t seed = 100;
  for (const Shape& shape : element_shapes()) {
    list.push_back(adamw_step("of " + to_text(shape), {1e-2, 0.9, 0.95, 1e-8, 0.1, 7}, shape,
                              shape.ndim() % 2 == 0, seed += 10));
    list.back().derived = true;
  }
  return list;
}

}  // namespace tally::samples
