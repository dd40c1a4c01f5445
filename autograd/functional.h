#pragma once
// Every differentiable function, one line each: apply<Op> records it when a tape is open.
#include "autograd/tape.h"
#include "core/ops/all.h"

namespace tally {

/// y = x W^T + b.   x (..., I)   weight (O, I)   bias (O) or undefined   y (..., O)
inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}) {
  return apply<ops::Linear>({}, x, weight, bias);
}
/// x / sqrt(mean(x^2) + eps) * weight over the last axis.   x (..., D)   weight (D)
inline Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6) {
  return apply<ops::RMSNorm>({eps}, x, weight);
}

}  // namespace tally
