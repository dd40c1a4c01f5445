#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/adafactor_update.h"
#include "core/ops/adaptive_update.h"
#include "core/ops/direction.h"
#include "core/ops/lion_update.h"
#include "core/ops/sgd_update.h"

namespace tally::samples {

// Steps on fresh parameters and fresh moments: the input is the gradient.

/// What a step is given beside the gradient.
struct UpdateCase {
  Shape shape;
  bool scaled = false;
  uint64_t seed = 0;

  Tensor weight(const Tensor& dw) const { return fresh(normal(shape, seed + 1), dw.dtype(), dw); }
  Tensor moment(const Tensor& dw) const {
    return fresh(normal(shape, seed + 2, 0.1), wide(dw), dw);
  }
  /// Not negative.
  Tensor square(const Tensor& dw, const Shape& of) const {
    SampleInput v = normal(of, seed + 3, 0.1);
    for (double& x : v.values) x *= x;
    return fresh(v, wide(dw), dw);
  }
  Tensor square(const Tensor& dw) const { return square(dw, shape); }
  Tensor scale(const Tensor& dw) const {
    return scaled ? fresh(values({1}, {0.25}), wide(dw), dw) : Tensor();
  }

 private:
  static DType wide(const Tensor& dw) { return acc_dtype(dw.dtype()); }
  static Tensor fresh(const SampleInput& input, DType dtype, const Tensor& dw) {
    return make_input(input, dtype, dw.device());
  }
};

using TakeStep = std::function<Sample::Tensors(const UpdateCase& c, const Tensor& dw)>;

inline Sample update_step(const char* op, std::string name, const UpdateCase& c, TakeStep take) {
  Sample s;
  s.op = op;
  s.name = std::move(name);
  s.narrow = false;
  s.inputs = {constant(normal(c.shape, c.seed))};
  s.apply = [=](const Sample::Tensors& in) -> Sample::Tensors {
    check_defined(op, "the gradient", in[0]);
    return take(c, in[0]);
  };
  return s;
}

/// One op: each of its configurations on a few shapes, the first on all shapes and on gradients that
/// a step must stand.
inline std::vector<Sample> update_samples(
    const char* op, const std::vector<std::pair<std::string, TakeStep>>& steps,
    const std::vector<Shape>& shapes = element_shapes()) {
  std::vector<Sample> list;
  uint64_t seed = 10;
  for (const auto& [name, take] : steps) {
    list.push_back(update_step(op, name + ", 5 x 7", {{5, 7}, false, seed += 10}, take));
    list.push_back(update_step(op, name + ", scaled", {{33}, true, seed += 10}, take));
    list.push_back(update_step(op, name + ", no elements", {{0, 3}, true, seed += 10}, take));
    list.push_back(update_step(op, name + ", one element", {{1}, false, seed += 10}, take));
  }
  Sample far = update_step(op, "extreme values", {{5}, false, 60}, steps[0].second);
  far.inputs = {constant(values({5}, {0, 1e15, -1e15, 1e-20, -30}))};
  list.push_back(std::move(far));
  seed = 1000;
  for (const Shape& shape : shapes) {
    const bool scaled = shape.ndim() % 2 == 0;
    list.push_back(update_step(op, "of " + to_text(shape), {shape, scaled, seed += 10},
                               steps[static_cast<size_t>(seed / 10) % steps.size()].second));
    list.back().derived = true;
  }
  return list;
}

inline std::vector<Sample> sgd_update() {
  using U = ops::SgdUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw), m = a.momentum > 0 ? c.moment(dw) : Tensor();
      U::into(w, m, dw, c.scale(dw), a);
      if (!m.defined()) return {w};
      return {w, m};
    };
  };
  return update_samples(U::name, {{"plain", with({{1e-2, 0.1, true, 2}})},
                                  {"momentum, L2", with({{1e-2, 0.1, false, 2}, 0.9, 0.4})},
                                  {"first step", with({{1e-2, 0.1, false, 1}, 0.9, 0.4})},
                                  {"nesterov", with({{1e-2, 0, true, 3}, 0.9, 0, true})}});
}

inline std::vector<Sample> lion_update() {
  using U = ops::LionUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw), m = c.moment(dw);
      U::into(w, m, dw, c.scale(dw), a);
      return {w, m};
    };
  };
  return update_samples(U::name, {{"decoupled", with({{1e-2, 0.1, true, 2}})},
                                  {"L2", with({{1e-2, 0.1, false, 2}, 0.95, 0.98})}});
}

inline std::vector<Sample> adagrad_update() {
  using U = ops::AdagradUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw), v = c.square(dw);
      U::into(w, v, dw, c.scale(dw), a);
      return {w, v};
    };
  };
  return update_samples(U::name, {{"decoupled", with({{1e-2, 0.1, true, 2}})},
                                  {"L2", with({{1e-2, 0.1, false, 7}, 0.01, 1e-8})}});
}

inline std::vector<Sample> rmsprop_update() {
  using U = ops::RmspropUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw), v = c.square(dw), m = a.momentum > 0 ? c.moment(dw) : Tensor();
      U::into(w, v, m, dw, c.scale(dw), a);
      if (!m.defined()) return {w, v};
      return {w, v, m};
    };
  };
  return update_samples(U::name, {{"decoupled", with({{1e-2, 0.1, true, 2}})},
                                  {"momentum, L2", with({{1e-2, 0.1, false, 2}, 0.9, 0.8})}});
}

inline std::vector<Sample> nadam_update() {
  using U = ops::NadamUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw), m = c.moment(dw), v = c.square(dw);
      U::into(w, m, v, dw, c.scale(dw), a);
      return {w, m, v};
    };
  };
  return update_samples(U::name,
                        {{"decoupled", with({{1e-2, 0.1, true, 2}, 0.9, 0.99, 1e-8, 4e-3, 0.2})},
                         {"L2", with({{1e-2, 0.1, false, 1}, 0.8, 0.9, 1e-8, 4e-3, 0.4})}});
}

inline std::vector<Sample> adafactor_update() {
  using U = ops::AdafactorUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw), m = a.beta1 > 0 ? c.moment(dw) : Tensor();
      const bool matrix = w.ndim() >= 2;
      const Shape rows = matrix ? w.shape().drop_last() : w.shape();
      U::Kept kept{c.square(dw, rows), {}, m};
      if (matrix) kept.column = c.square(dw, rows.drop_last().append(w.size(-1)));
      U::into(w, kept, dw, c.scale(dw), a);
      Sample::Tensors out{w, kept.row};
      if (matrix) out.push_back(kept.column);
      if (m.defined()) out.push_back(m);
      return out;
    };
  };
  U::Attrs torch{{1e-2, 0.1, true, 9}};
  torch.eps = 0, torch.floor = 1e-6, torch.relative = true, torch.decay_by_size = false;
  U::Attrs plain{{1e-2, 0, true, 3}, 0.9};
  plain.scaled = false, plain.clip = 0.5;
  return update_samples(U::name, {{"T5's", with({{1e-2, 0.1, true, 3}})},
                                  {"PyTorch's", with(torch)},
                                  {"with a moment, unscaled", with(plain)}});
}

inline std::vector<Sample> scaled_gradient() {
  const auto with = [](double l2) -> TakeStep {
    return [l2](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      return {ops::ScaledGradient::of(c.weight(dw), dw, c.scale(dw), l2)};
    };
  };
  return update_samples(ops::ScaledGradient::name, {{"L2", with(0.1)}, {"scale alone", with(0)}});
}

inline std::vector<Sample> momentum_direction() {
  using U = ops::MomentumDirection;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor m = c.moment(dw);
      return {U::of(m, dw, c.scale(dw), a), m};
    };
  };
  return update_samples(U::name, {{"nesterov", with({0.95, true})}, {"plain", with({0.9, false})}});
}

inline std::vector<Sample> unit_norm() {
  const auto with = [](bool added) -> TakeStep {
    return [added](const UpdateCase&, const Tensor& dw) -> Sample::Tensors {
      const Tensor sum = make_input(values({1}, {7.5}), ops::wide_dtype(dw.dtype()), dw.device());
      return {ops::UnitNorm::of(dw, sum, {1e-7, added})};
    };
  };
  return update_samples(ops::UnitNorm::name, {{"bounded", with(false)}, {"added", with(true)}});
}

inline std::vector<Sample> blend() {
  const auto with = [](double a, double b) -> TakeStep {
    return [a, b](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor y = c.weight(dw);
      ops::Blend::into(y, a, dw, b);
      return {y};
    };
  };
  return update_samples(ops::Blend::name, {{"mean", with(0.9, 0.1)}, {"replaced", with(0, 1)}});
}

inline std::vector<Sample> directed_update() {
  using U = ops::DirectedUpdate;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor w = c.weight(dw);
      U::into(w, dw, a);
      return {w};
    };
  };
  return update_samples(U::name, {{"decay first", with({{1e-2, 0.1}, 0.2})},
                                  {"decay after", with({{1e-2, 0.1}, 2, true})}});
}

inline std::vector<Sample> adam_quotient() {
  using U = ops::AdamQuotient;
  const auto with = [](const U::Attrs& a) -> TakeStep {
    return [a](const UpdateCase& c, const Tensor& dw) -> Sample::Tensors {
      const Tensor v = c.square(dw);
      return {U::of(v, dw, c.weight(dw), a), v};
    };
  };
  return update_samples(U::name, {{"usual", with({})}, {"shorter", with({0.9, 1e-6})}});
}

}  // namespace tally::samples
