#pragma once
#include <cstdint>

namespace tally::cpu {

/// The activations, numbered as in core/ops/activation_functions.h.
enum class Unit : uint8_t {
  identity,
  relu,
  squared_relu,
  gelu,
  gelu_tanh,
  silu,
  swish,
  sigmoid,
  tanh,
  elu,
  selu,
  softplus
};

/// act(min(a, limit)) (max(-limit, min(b, limit)) + offset); limit: infinity for none.
struct GateShape {
  Unit unit;
  double parameter;
  float limit, offset;
};

/// A row of swish with a learned beta: y (+)= x s(beta x), or with dy its gradient. beta moves by
/// `step`, 0 or 1; sums[i] += what element i gives to beta's gradient. y or sums may be null.
struct LearnedSwishRow {
  int64_t n;
  const float *dy, *x, *beta;
  int64_t step;
  float *y, *sums;
  bool add;
};

/// A row of xIELU, or with dy its gradient, with its two curvatures p and n.
struct XieluRow {
  int64_t count;
  const float *dy, *x;
  float p, n, b, eps;
  float* y;  // null: only the sums are wanted
  bool add;
};
/// What a row gives to the gradients of p and n.
struct XieluSums {
  float p, n;
};

}  // namespace tally::cpu
