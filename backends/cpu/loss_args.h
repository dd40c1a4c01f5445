#pragma once
#include <cstdint>

namespace tally::cpu {

/// Of one row of capped logits: their maximum, sum exp(u - top), sum u.
struct LossSums {
  float top, exps, all;
};

/// The gradient of one row's loss but for its target; cap 0: none.
struct LossGradient {
  int64_t n;
  const float* x;
  float* dx;
  float log_z, factor, rest, cap;
  bool add;
};

}  // namespace tally::cpu
