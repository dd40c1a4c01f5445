#include "models/architecture.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"
#include "models/parameters.h"

namespace tally {

BlockNorms norms_of(const ModelConfig& c) {
  const bool before = c.placement == Placement::pre || c.placement == Placement::double_norm ||
                      c.placement == Placement::post;
  const bool behind = c.placement == Placement::double_norm || c.placement == Placement::output;
  return {before, before && c.parallel != Parallel::shared_norm, behind};
}

bool has_experts(const ModelConfig& c, int64_t layer) {
  return c.experts > 0 && layer >= c.first_expert_layer &&
         (layer - c.first_expert_layer) % c.expert_layer_every == 0;
}

int64_t shared_expert_width(const ModelConfig& c) {
  return c.shared_experts * (c.shared_expert_d_ff > 0 ? c.shared_expert_d_ff : c.expert_d_ff);
}

int64_t learned_activation_parameters(const ModelConfig& c) {
  return c.activation == Activation::learned_swish ? 1 : c.activation == Activation::xielu ? 2 : 0;
}

FeedForwardCounts feed_forward_counts(const ModelConfig& c) {
  const int64_t branches = c.gated ? 2 : 1, d = c.d_model;
  const auto layer = [&](int64_t width) {
    return (branches + 1) * d * width + (c.mlp_bias ? branches * width + d : 0) +
           learned_activation_parameters(c);
  };
  const auto products = [&](int64_t width) { return (branches + 1) * d * width; };
  FeedForwardCounts n;
  for (int64_t i = 0; i < c.layers; ++i) n.expert_layers += has_experts(c, i);
  const int64_t shared = shared_expert_width(c);
  for (int64_t i = 0; i < c.layers; ++i) {
    if (has_experts(c, i) && !c.dense_branch) continue;
    n.parameters += layer(layer_shape(c, i).d_ff);
    n.multiplied += products(layer_shape(c, i).d_ff);
  }
  if (n.expert_layers == 0) return n;
  const int64_t gate = c.shared_expert_gate ? d : 0,
                router = c.experts * (d + c.router_bias + c.router_expert_scale) +
                         (c.router_norm ? d : 0);
  n.parameters += n.expert_layers * (router + c.experts * layer(c.expert_d_ff) +
                                     (shared > 0 ? layer(shared) : 0) + gate);
  n.multiplied += n.expert_layers * (c.experts * d + c.experts_per_token * products(c.expert_d_ff) +
                                     products(shared) + gate);
  return n;
}

int64_t norm_count(const ModelConfig& c) {
  return c.layers * norms_of(c).count() + c.embedding_norm + (c.final_norm == FinalNorm::on);
}
int64_t branch_norm_count(const ModelConfig& c) {
  return c.dense_branch ? 3 * feed_forward_counts(c).expert_layers : 0;
}
int64_t norm_width(const ModelConfig& c) {
  if (c.norm == Norm::scale_norm) return 1;
  return c.norm_gain == NormGain::none ? 0 : c.d_model * (c.norm_bias ? 2 : 1);
}

int64_t qk_norm_parameters(const ModelConfig& c) {
  const int64_t layers = mixer_layers(c).attention;
  if (is_latent(c)) return layers * latent_counts(c).norms;
  if (is_shared(c)) return shared_counts(c).norms;
  if (c.qk_norm == QKNorm::none || c.norm_gain == NormGain::none) return 0;
  const int64_t heads = c.qk_norm == QKNorm::head ? 2 : c.heads + c.kv_heads;
  return layers * heads * c.head_dim * (c.norm_bias ? 2 : 1);
}

ParameterCount parameter_counts(const ModelConfig& c) {
  if (c.architecture != Architecture::decoder) return architecture_counts(c);
  const int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  ParameterCount n;
  n.embedding = c.vocab * c.embedding_width() + 2 * c.embedding_dim * c.d_model;
  n.position = c.position == Position::learned   ? (c.context + c.position_offset) * c.d_model
               : c.position == Position::t5_bias ? c.t5_buckets * c.heads
                                                 : 0;
  const int64_t attention_layers = mixer_layers(c).attention;
  n.recurrence = recurrence_counts(c).parameters;
  n.attention = attention_layers * latent_counts(c).matrices + shared_counts(c).matrices;
  const int64_t sinks = c.attention_sink ? c.heads : 0;
  if (is_latent(c)) n.attention += attention_layers * sinks;
  if (!is_latent(c) && !is_shared(c))
    n.attention =
        attention_layers * ((2 * q + 2 * kv) * c.d_model + (c.qkv_bias ? q + 2 * kv : 0) +
                            (c.attention_output_bias ? c.d_model : 0) +
                            (c.position == Position::xl_relative ? q * (c.d_model + 2) : 0) +
                            (c.attention_gate ? q * c.d_model : 0) + sinks);
  n.mlp = feed_forward_counts(c).parameters;
  const LayerInputCounts inputs = layer_input_counts(c);
  n.layer_inputs = inputs.table + inputs.matrices;
  n.norms =
      (norm_count(c) + branch_norm_count(c)) * norm_width(c) + qk_norm_parameters(c) + inputs.norms;
  n.gains = c.residual_gain == ResidualGain::none
                ? 0
                : 2 * c.layers * (c.residual_gain == ResidualGain::scalar ? 1 : c.d_model);
  // A block has five: two before first matrices, two before last ones, one before the activation.
  n.shifts = c.scalar_biases ? 5 * c.layers + 1 : 0;
  n.head = (c.tied_head ? 0 : c.vocab * c.embedding_width()) + (c.head_bias ? c.vocab : 0);
  return n;
}

int64_t parameter_count(const ModelConfig& config) { return parameter_counts(config).total(); }

}  // namespace tally
