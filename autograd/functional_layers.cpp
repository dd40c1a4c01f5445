#include "autograd/functional.h"
#include "autograd/tape.h"
#include "core/ops/activation.h"
#include "core/ops/attention/attention.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/embedding.h"
#include "core/ops/gate.h"
#include "core/ops/gather.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear.h"
#include "core/ops/linear_cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/relative_bias.h"
#include "core/ops/relative_shift.h"
#include "core/ops/rms_norm.h"
#include "core/ops/rope.h"
#include "core/ops/soft_cap.h"

namespace tally {

Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  return apply<ops::MatMul>({trans_a, trans_b}, a, b);
}
Tensor gather(const Tensor& x, const Tensor& index, int axis) {
  return apply<ops::Gather>({axis}, x, index);
}
Tensor index_select(const Tensor& x, const Tensor& index, int axis) {
  return apply<ops::IndexSelect>({axis}, x, index);
}
Tensor activation(const Tensor& x, ops::ActivationKind function, double parameter) {
  return apply<ops::Activation>({function, parameter}, x);
}
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const ops::AttentionOptions& options, const Tensor& mask, const Tensor& bias) {
  return apply<ops::Attention>(options, q, k, v, mask, bias);
}
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const ops::LossOptions& options) {
  return apply<ops::CrossEntropy>(options, logits, targets)[0];
}
std::array<Tensor, 2> cross_entropy_with_stats(const Tensor& logits, const Tensor& targets,
                                               const ops::LossOptions& options) {
  return apply<ops::CrossEntropy>(options, logits, targets);
}
Tensor dropout(const Tensor& x, double p, Generator& generator, const Tensor& residual) {
  ops::Dropout::check_probability(p);
  if (p == 0) return residual.defined() ? add(residual, x) : x;
  return apply<ops::Dropout>({p, generator.seed(), generator.take_stream()}, x, residual);
}
Tensor embedding(const Tensor& ids, const Tensor& weight, double scale, int64_t padding_id) {
  return apply<ops::Embedding>({scale, padding_id}, ids, weight);
}
Tensor gate(const Tensor& a, const Tensor& b, ops::ActivationKind function, double parameter) {
  return apply<ops::Gate>({function, parameter}, a, b);
}
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                  bool unit_offset) {
  return apply<ops::LayerNorm>({eps, unit_offset}, x, weight, bias);
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply<ops::Linear>({}, x, weight, bias);
}
Tensor linear_cross_entropy(const Tensor& h, const Tensor& weight, const Tensor& targets,
                            const ops::LossOptions& options) {
  return apply<ops::LinearCrossEntropy>(options, h, weight, targets)[0];
}
std::array<Tensor, 2> linear_cross_entropy_with_stats(const Tensor& h, const Tensor& weight,
                                                      const Tensor& targets,
                                                      const ops::LossOptions& options) {
  return apply<ops::LinearCrossEntropy>(options, h, weight, targets);
}
Tensor relative_bias(const Tensor& table, int64_t queries, int64_t keys, bool two_sided,
                     int64_t max_distance) {
  return apply<ops::RelativeBias>({queries, keys, two_sided, max_distance}, table);
}
Tensor relative_shift(const Tensor& x, int64_t keys) {
  return apply<ops::RelativeShift>({keys}, x);
}
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, bool unit_offset,
                bool round_before_weight) {
  return apply<ops::RMSNorm>({eps, unit_offset, round_before_weight}, x, weight);
}
Tensor rope(const Tensor& x, const Tensor& table, const ops::Rope::Attrs& options,
            const Tensor& positions) {
  return apply<ops::Rope>(options, x, table, positions);
}
Tensor soft_cap(const Tensor& x, double cap) { return apply<ops::SoftCap>({cap}, x); }

}  // namespace tally
