#pragma once
// Every differentiable function, one line each: apply<Op> records it when a tape is open.
#include "autograd/tape.h"
#include "core/ops/all.h"

namespace tally {

/// Rows of a table by id, times `scale`.   ids (...) i64   weight (V, D)   y (..., D)
/// Error for an id outside 0..V-1. The row `padding_id` gets no gradient (-1: none).
inline Tensor embedding(const Tensor& ids, const Tensor& weight, double scale = 1, int64_t padding_id = -1) {
  return apply<ops::Embedding>({scale, padding_id}, ids, weight);
}
/// y = x W^T + b.   x (..., I)   weight (O, I)   bias (O) or undefined   y (..., O)
inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}) {
  return apply<ops::Linear>({}, x, weight, bias);
}
/// x / sqrt(mean(x^2) + eps) * weight over the last axis.   x (..., D)   weight (D)
inline Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6) {
  return apply<ops::RMSNorm>({eps}, x, weight);
}
/// Rotary embedding of queries or keys.   x (B,T,H,K) any strides   table (P,R) from rope_table(...)
/// Token t is at position offset + t, or at positions (B,T) where given. Error past the table's end.
inline Tensor rope(const Tensor& x, const Tensor& table, const ops::Rope::Attrs& options = {}, const Tensor& positions = {}) {
  return apply<ops::Rope>(options, x, table, positions);
}

}  // namespace tally
