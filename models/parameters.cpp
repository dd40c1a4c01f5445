#include "models/parameters.h"

#include "models/architecture.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"

namespace tally {
namespace {

/// Collects specs under the names that the modules give their parameters.
class SpecList {
 public:
  explicit SpecList(const ModelConfig& config) : config_(config) {}

  void add(const std::string& name, std::vector<int64_t> shape, Role role) {
    specs_.push_back({name, std::move(shape), role, layer_});
  }
  void norm(const std::string& name, bool present = true, int64_t width = 0) {
    if (!present) return;
    if (width == 0) width = config_.d_model;
    if (config_.norm == Norm::scale_norm)
      add(name + ".weight", {}, Role::norm);
    else if (config_.norm_gain != NormGain::none)
      add(name + ".weight", {width}, Role::norm);
    if (config_.norm_bias) add(name + ".bias", {width}, Role::bias);
  }
  void linear(const std::string& name, int64_t out, int64_t in, bool bias, Role role) {
    add(name + ".weight", {out, in}, role);
    if (bias) add(name + ".bias", {out}, Role::bias);
  }
  void attention(const std::string& at) {
    const ModelConfig& c = config_;
    const int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
    norm(at + "attention_norm", norms_of(c).attention);
    shift(at + "attention_shift");
    if (mixer_of(c, layer_) != nn::Mixer::attention) {
      recurrence(at);
      behind_attention(at);
      return;
    }
    if (is_latent(c) || is_shared(c)) {
      if (is_latent(c))
        latent(at + "attention.");
      else
        shared(at + "attention.");
      behind_attention(at);
      return;
    }
    if (c.fused_parallel) {
      linear(at + "input", q + 2 * kv + (c.gated ? 2 : 1) * c.d_ff, c.d_model, c.mlp_bias,
             Role::projection);
    } else if (c.fused_qkv) {
      linear(at + "attention.qkv", q + 2 * kv, c.d_model, c.qkv_bias, Role::projection);
    } else {
      linear(at + "attention.q", q, c.d_model, c.qkv_bias, Role::projection);
      linear(at + "attention.k", kv, c.d_model, c.qkv_bias, Role::projection);
      linear(at + "attention.v", kv, c.d_model, c.qkv_bias, Role::projection);
    }
    if (c.qk_norm == QKNorm::heads) {
      add(at + "attention.q_norm.weight", {c.heads, c.head_dim}, Role::norm);
      add(at + "attention.k_norm.weight", {c.kv_heads, c.head_dim}, Role::norm);
    } else if (c.qk_norm != QKNorm::none) {
      const bool full = c.qk_norm == QKNorm::full;
      norm(at + "attention.q_norm", true, full ? q : c.head_dim);
      norm(at + "attention.k_norm", true, full ? kv : c.head_dim);
    }
    if (c.position == Position::xl_relative) {
      add(at + "attention.content_bias", {q}, Role::bias);
      add(at + "attention.position_bias", {q}, Role::bias);
      linear(at + "attention.relative", q, c.d_model, false, Role::projection);
    }
    if (c.attention_sink) add(at + "attention.sink", {c.heads}, Role::bias);
    if (c.attention_gate) linear(at + "attention.gate", q, c.d_model, false, Role::projection);
    shift(at + "attention.shift");
    linear(at + "attention.out", c.d_model, q, c.attention_output_bias, Role::residual_projection);
    behind_attention(at);
  }
  void behind_attention(const std::string& at) {
    norm(at + "attention_output_norm", norms_of(config_).behind);
    gain(at + "attention_gain");
  }
  void shift(const std::string& name) {
    if (config_.scalar_biases) add(name, {}, Role::bias);
  }
  void latent(const std::string& at) {
    const ModelConfig& c = config_;
    const int64_t d = c.d_model, q = c.heads * c.head_dim, rank = c.q_lora_rank;
    const bool gains = c.norm_gain != NormGain::none;
    if (rank > 0) linear(at + "q_down", rank, d, false, Role::projection);
    if (rank > 0 && gains) add(at + "q_norm.weight", {rank}, Role::norm);
    linear(at + "q", q, rank > 0 ? rank : d, false, Role::projection);
    linear(at + "kv_down", c.kv_lora_rank + c.qk_rope_head_dim, d, false, Role::projection);
    if (gains) add(at + "kv_norm.weight", {c.kv_lora_rank}, Role::norm);
    linear(at + "kv_up", c.heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank, false,
           Role::projection);
    if (c.attention_sink) add(at + "sink", {c.heads}, Role::bias);
    linear(at + "out", d, c.heads * c.v_head_dim, false, Role::residual_projection);
  }
  void shared(const std::string& at) {
    const ModelConfig& c = config_;
    const LayerShape h = layer_shape(c, layer_);
    const int64_t q = c.heads * h.head_dim, kv = h.kv_heads * h.head_dim;
    linear(at + "q", q, c.d_model, false, Role::projection);
    if (!h.takes) linear(at + "k", kv, c.d_model, false, Role::projection);
    if (!h.takes && !h.keys_as_values) linear(at + "v", kv, c.d_model, false, Role::projection);
    const bool gains = c.qk_norm == QKNorm::head && c.norm_gain != NormGain::none;
    if (gains) add(at + "q_norm.weight", {h.head_dim}, Role::norm);
    if (gains && !h.takes) add(at + "k_norm.weight", {h.head_dim}, Role::norm);
    linear(at + "out", c.d_model, q, false, Role::residual_projection);
  }
  void layer_input(const std::string& at) {
    const int64_t width = config_.layer_input_dim;
    if (width == 0) return;
    linear(at + "gate", width, config_.d_model, false, Role::projection);
    linear(at + "projection", config_.d_model, width, false, Role::residual_projection);
    norm(at + "norm");
  }
  void recurrence(const std::string& at) {
    if (mixer_of(config_, layer_) == nn::Mixer::delta_net)
      delta_net(at + "delta_net.");
    else
      mamba(at + "mamba.");
  }
  void delta_net(const std::string& at) {
    const ModelConfig& c = config_;
    const int64_t d = c.d_model, heads = c.delta_value_heads, values = heads * c.delta_value_dim,
                  channels = 2 * c.delta_key_heads * c.delta_key_dim + values;
    linear(at + "qkv", channels, d, false, Role::projection);
    add(at + "conv.weight", {channels, c.conv_width}, Role::convolution);
    linear(at + "z", values, d, false, Role::projection);
    linear(at + "beta", heads, d, false, Role::projection);
    linear(at + "decay", heads, d, false, Role::projection);
    add(at + "decay_log", {heads}, Role::decay);
    add(at + "decay_bias", {heads}, Role::step_bias);
    add(at + "norm.weight", {c.delta_value_dim}, Role::ones);
    linear(at + "out", d, values, false, Role::residual_projection);
  }
  void mamba(const std::string& at) {
    const ModelConfig& c = config_;
    const int64_t inner = c.mamba_inner, rank = c.mamba_dt_rank, state = c.mamba_state;
    linear(at + "in", 2 * inner, c.d_model, false, Role::projection);
    add(at + "conv.weight", {inner, c.conv_width}, Role::convolution);
    if (c.mamba_conv_bias) add(at + "conv.bias", {inner}, Role::bias);
    linear(at + "parameters", rank + 2 * state, inner, false, Role::projection);
    if (c.mamba_norms) add(at + "dt_norm.weight", {rank}, Role::ones);
    if (c.mamba_norms) add(at + "b_norm.weight", {state}, Role::ones);
    if (c.mamba_norms) add(at + "c_norm.weight", {state}, Role::ones);
    linear(at + "dt", inner, rank, false, Role::projection);
    add(at + "dt.bias", {inner}, Role::step_bias);
    add(at + "decay_log", {inner, state}, Role::decay);
    add(at + "skip", {inner}, Role::ones);
    linear(at + "out", c.d_model, inner, false, Role::residual_projection);
  }
  void gain(const std::string& name) {
    if (config_.residual_gain == ResidualGain::scalar) add(name, {}, Role::gain);
    if (config_.residual_gain == ResidualGain::vector) add(name, {config_.d_model}, Role::gain);
  }
  void experts(const std::string& at) {
    const ModelConfig& c = config_;
    const int64_t e = c.experts, d = c.d_model, f = c.expert_d_ff, wide = c.gated ? 2 * f : f,
                  shared = shared_expert_width(c);
    const std::string up = c.gated ? "gate_up" : "up";
    linear(at + "mlp.router", e, d, c.router_bias, Role::projection);
    if (c.router_norm) add(at + "mlp.router.scale", {d}, Role::ones);
    if (c.router_expert_scale) add(at + "mlp.router.expert_scale", {e}, Role::ones);
    add(at + "mlp.experts." + up + ".weight", {e, wide, d}, Role::projection);
    if (c.mlp_bias) add(at + "mlp.experts." + up + ".bias", {e, wide}, Role::bias);
    add(at + "mlp.experts.down.weight", {e, d, f}, Role::residual_projection);
    if (c.mlp_bias) add(at + "mlp.experts.down.bias", {e, d}, Role::bias);
    if (shared > 0) {
      linear(at + "mlp.shared." + up, c.gated ? 2 * shared : shared, d, c.mlp_bias,
             Role::projection);
      linear(at + "mlp.shared.down", d, shared, c.mlp_bias, Role::residual_projection);
    }
    if (c.shared_expert_gate) add(at + "mlp.shared_gate.weight", {1, d}, Role::projection);
  }
  void mlp(const std::string& at) {
    const ModelConfig& c = config_;
    const int64_t wide = layer_shape(c, layer_).d_ff;
    norm(at + "mlp_norm", norms_of(c).mlp);
    shift(at + "mlp_shift");
    const bool dense = c.dense_branch || !has_experts(c, layer_);
    if (!dense || c.fused_parallel) {
      // There are none, or the first matrices are in the block's input.
    } else if (c.gated && c.fused_gate_up) {
      linear(at + "mlp.gate_up", 2 * wide, c.d_model, c.mlp_bias, Role::projection);
    } else {
      if (c.gated) linear(at + "mlp.gate", wide, c.d_model, c.mlp_bias, Role::projection);
      linear(at + "mlp.up", wide, c.d_model, c.mlp_bias, Role::projection);
    }
    shift(at + "mlp.activation_shift");
    shift(at + "mlp.shift");
    if (c.activation == Activation::learned_swish) add(at + "mlp.beta", {}, Role::curve);
    if (c.activation == Activation::xielu) {
      add(at + "mlp.alpha_p", {}, Role::curve);
      add(at + "mlp.alpha_n", {}, Role::curve);
    }
    if (dense) linear(at + "mlp.down", c.d_model, wide, c.mlp_bias, Role::residual_projection);
    if (has_experts(c, layer_)) {
      norm(at + "dense_output_norm", c.dense_branch);
      norm(at + "experts_norm", c.dense_branch);
      experts(at);
      norm(at + "experts_output_norm", c.dense_branch);
    }
    norm(at + "mlp_output_norm", norms_of(c).behind);
    gain(at + "mlp_gain");
  }
  void block(int64_t layer) {
    layer_ = layer;
    const std::string at = "blocks." + std::to_string(layer) + ".";
    attention(at);
    mlp(at);
    layer_input(at + "layer_input.");
    layer_ = 0;
  }
  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  const ModelConfig& config_;
  int64_t layer_ = 0;
  std::vector<ParameterSpec> specs_;
};

}  // namespace

int64_t ParameterSpec::numel() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::vector<ParameterSpec> parameter_specs(const ModelConfig& config) {
  if (config.architecture != Architecture::decoder) return architecture_specs(config);
  SpecList list(config);
  const int64_t width = config.embedding_width();
  list.add("embedding.weight", {config.vocab, width}, Role::embedding);
  if (config.embedding_dim > 0)
    list.linear("project_in", config.d_model, width, false, Role::projection);
  if (const int64_t all = config.layers * config.layer_input_dim; all > 0) {
    list.add("layer_inputs.embedding.weight", {config.vocab, all}, Role::embedding);
    list.linear("layer_inputs.projection", all, config.d_model, false, Role::projection);
    list.norm("layer_inputs.norm", true, config.layer_input_dim);
  }
  if (config.position == Position::learned) {
    list.add("position.weight", {config.context + config.position_offset, config.d_model},
             Role::position);
  } else if (config.position == Position::t5_bias) {
    list.add("position.weight", {config.t5_buckets, config.heads}, Role::position);
  }
  list.norm("embedding_norm", config.embedding_norm);
  for (int64_t layer = 0; layer < config.layers; ++layer) list.block(layer);
  list.norm("final_norm", config.final_norm == FinalNorm::on);
  if (config.embedding_dim > 0)
    list.linear("project_out", width, config.d_model, false, Role::projection);
  list.shift("head.shift");
  if (!config.tied_head) list.add("head.weight", {config.vocab, width}, Role::head);
  if (config.head_bias) list.add("head.bias", {config.vocab}, Role::bias);
  return list.take();
}

std::vector<ParameterSpec> buffer_specs(const ModelConfig& c) {
  std::vector<ParameterSpec> list;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    if (c.router_selection_bias && has_experts(c, i))
      list.push_back({at + "mlp.router.selection_bias", {c.experts}, Role::bias, i});
    if (c.layer_scale) list.push_back({at + "layer_scale", {1}, Role::gain, i});
  }
  return list;
}

}  // namespace tally
