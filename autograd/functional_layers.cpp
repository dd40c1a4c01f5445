#include "autograd/functional.h"
#include "autograd/tape.h"
#include "core/ops/activation.h"
#include "core/ops/attention/attention.h"
#include "core/ops/causal_conv1d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/embedding.h"
#include "core/ops/expert_combine.h"
#include "core/ops/expert_gather.h"
#include "core/ops/expert_linear.h"
#include "core/ops/gate.h"
#include "core/ops/gated_delta_rule.h"
#include "core/ops/gather.h"
#include "core/ops/layer_norm.h"
#include "core/ops/learned_swish.h"
#include "core/ops/linear.h"
#include "core/ops/linear_cross_entropy.h"
#include "core/ops/load_balance_loss.h"
#include "core/ops/matmul.h"
#include "core/ops/relative_bias.h"
#include "core/ops/relative_shift.h"
#include "core/ops/residual_add.h"
#include "core/ops/rms_norm.h"
#include "core/ops/rope.h"
#include "core/ops/selective_scan.h"
#include "core/ops/sink_softmax.h"
#include "core/ops/soft_cap.h"
#include "core/ops/xielu.h"

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
                 const ops::AttentionOptions& options, const Tensor& mask, const Tensor& bias,
                 const Tensor& documents, const Tensor& sink) {
  return apply<ops::Attention>(options, q, k, v, mask, bias, documents, sink);
}
Tensor causal_conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const Tensor& documents) {
  return apply<ops::CausalConv1d>({}, x, weight, bias, documents);
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
Tensor expert_combine(const Tensor& rows, const Tensor& weights, const Tensor& places) {
  return apply<ops::ExpertCombine>({}, rows, weights, places);
}
std::array<Tensor, 3> expert_gather(const Tensor& x, const Tensor& chosen, int64_t experts) {
  return apply<ops::ExpertGather>({experts}, x, chosen);
}
Tensor expert_linear(const Tensor& x, const Tensor& weight, const Tensor& offsets,
                     const Tensor& bias) {
  return apply<ops::ExpertLinear>({}, x, weight, bias, offsets);
}
std::array<Tensor, 2> gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& g, const Tensor& beta, const Tensor& state,
                                       double scale, const Tensor& documents) {
  return apply<ops::GatedDeltaRule>({scale}, q, k, v, g, beta, state, documents);
}
Tensor gate(const Tensor& a, const Tensor& b, ops::ActivationKind function, double parameter,
            double limit, double offset) {
  return apply<ops::Gate>({function, parameter, limit, offset}, a, b);
}
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                  bool unit_offset) {
  return apply<ops::LayerNorm>({eps, unit_offset}, x, weight, bias);
}
Tensor learned_swish(const Tensor& x, const Tensor& beta) {
  return apply<ops::LearnedSwish>({}, x, beta);
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
Tensor load_balance_loss(const Tensor& logits, const Tensor& chosen) {
  return apply<ops::LoadBalanceLoss>({}, logits, chosen);
}
std::array<Tensor, 2> moe_router(const Tensor& logits, const ops::RouterOptions& options,
                                 const Tensor& bias) {
  return apply<ops::MoeRouter>(options, logits, bias);
}
Tensor relative_bias(const Tensor& table, int64_t queries, int64_t keys, bool two_sided,
                     int64_t max_distance) {
  return apply<ops::RelativeBias>({queries, keys, two_sided, max_distance}, table);
}
Tensor relative_shift(const Tensor& x, int64_t keys) {
  return apply<ops::RelativeShift>({keys}, x);
}
Tensor residual_add(const Tensor& residual, const Tensor& x, const Tensor& gain, double scale,
                    double p, Generator* generator) {
  ops::ResidualAdd::Attrs a{scale, generator ? p : 0, 0, 0};
  if (a.p > 0) a.seed = generator->seed(), a.stream = generator->take_stream();
  return apply<ops::ResidualAdd>(a, residual, x, gain);
}
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, bool unit_offset,
                bool round_before_weight) {
  return apply<ops::RMSNorm>({eps, unit_offset, round_before_weight}, x, weight);
}
Tensor rope(const Tensor& x, const Tensor& table, const ops::Rope::Attrs& options,
            const Tensor& positions) {
  return apply<ops::Rope>(options, x, table, positions);
}
std::array<Tensor, 2> selective_scan(const Tensor& x, const Tensor& dt, const Tensor& a,
                                     const Tensor& b, const Tensor& c, const Tensor& d,
                                     const Tensor& state, const Tensor& documents) {
  return apply<ops::SelectiveScan>({}, x, dt, a, b, c, d, state, documents);
}
Tensor sink_softmax(const Tensor& x, const Tensor& sink, const Tensor& mask, double scale) {
  return apply<ops::SinkSoftmax>({scale}, x, mask, sink);
}
Tensor soft_cap(const Tensor& x, double cap) { return apply<ops::SoftCap>({cap}, x); }
Tensor xielu(const Tensor& x, const Tensor& p, const Tensor& n, double b, double eps) {
  return apply<ops::Xielu>({b, eps}, x, p, n);
}

}  // namespace tally
