#include "models/config_blocks.h"

#include <cmath>

#include "core/error.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_shared.h"
#include "models/parameters.h"

namespace tally {
namespace {

// The values of a field and those of the layer it is cast to stand in one order.
template <class Ours, class Theirs>
constexpr bool same(Ours a, Theirs b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(Norm::layer_norm, nn::NormKind::layer_norm) &&
              same(Norm::rms_norm, nn::NormKind::rms_norm) &&
              same(Norm::scale_norm, nn::NormKind::scale_norm));
static_assert(same(NormGain::gamma, nn::NormGain::gamma) &&
              same(NormGain::one_plus_gamma, nn::NormGain::one_plus_gamma) &&
              same(NormGain::none, nn::NormGain::none));
static_assert(same(Placement::pre, nn::Placement::pre) &&
              same(Placement::post, nn::Placement::post) &&
              same(Placement::double_norm, nn::Placement::double_norm) &&
              same(Placement::output, nn::Placement::output) &&
              same(Placement::none, nn::Placement::none));
static_assert(same(Parallel::none, nn::Parallel::none) &&
              same(Parallel::shared_norm, nn::Parallel::shared_norm) &&
              same(Parallel::two_norms, nn::Parallel::two_norms));
static_assert(same(ResidualGain::none, nn::ResidualGain::none) &&
              same(ResidualGain::scalar, nn::ResidualGain::scalar) &&
              same(ResidualGain::vector, nn::ResidualGain::vector));
static_assert(same(QKNorm::none, nn::QKNorm::Width::none) &&
              same(QKNorm::head, nn::QKNorm::Width::head) &&
              same(QKNorm::full, nn::QKNorm::Width::full) &&
              same(QKNorm::heads, nn::QKNorm::Width::heads));
static_assert(same(Router::softmax, ops::RouterScore::softmax) &&
              same(Router::sigmoid, ops::RouterScore::sigmoid));

nn::LearnedActivation learned_of(Activation a) {
  return a == Activation::learned_swish ? nn::LearnedActivation::swish
         : a == Activation::xielu       ? nn::LearnedActivation::xielu
                                        : nn::LearnedActivation::none;
}

/// Ours and that of the ops have the same names; one that is learned stands beside them.
ops::ActivationKind activation_of(Activation a) {
  if (learned_of(a) != nn::LearnedActivation::none) return ops::ActivationKind::identity;
  const std::string_view name = enum_names(Activation{})[static_cast<size_t>(a)];
  for (int k = 0; k < ops::kActivations; ++k) {
    if (ops::kActivationNames[k] == name) return static_cast<ops::ActivationKind>(k);
  }
  fail("activation: ", name, " has no function");
}

void check_norms(const ModelConfig& c, const std::string& where) {
  check(c.norm == Norm::layer_norm || !c.norm_bias, where,
        ": norm_bias = true needs norm = layer_norm; ",
        enum_names(Norm{})[static_cast<size_t>(c.norm)], " has no bias");
  check(c.norm_gain != NormGain::none || !c.norm_bias, where,
        ": norm_bias = true needs a gain; set norm_gain to gamma, or norm_bias to false");
  check(c.norm != Norm::scale_norm || c.norm_gain == NormGain::gamma, where,
        ": scale_norm has one number, which is its gain; set norm_gain to gamma");
  check(!c.norm_round_before_gain || (c.norm == Norm::rms_norm && c.norm_gain != NormGain::none),
        where, ": norm_round_before_gain needs norm = rms_norm and a norm_gain");
}

void check_residual(const ModelConfig& c, const std::string& where) {
  check(c.parallel == Parallel::none || c.placement != Placement::post, where,
        ": parallel = ", enum_names(Parallel{})[static_cast<size_t>(c.parallel)],
        " has one sum, behind which placement = post would have two norms; choose placement = pre");
  check(c.residual_gain_init == 0 || c.residual_gain != ResidualGain::none, where,
        ": residual_gain_init = ", c.residual_gain_init,
        " needs a residual_gain; set it to scalar or vector");
  for (const double scale : c.residual_scales) {
    check(std::fabs(scale) <= 1e6, where,
          ": residual_scales must be numbers from -1e6 to 1e6; it holds ", scale);
  }
  const auto layers = static_cast<size_t>(c.layers);
  check(c.residual_scales.size() <= layers, where, ": residual_scales has ",
        c.residual_scales.size(), " numbers for ", c.layers, " layers");
}

void check_qk_norm(const ModelConfig& c, const std::string& where) {
  check(c.qk_norm == QKNorm::none || c.norm != Norm::scale_norm, where,
        ": qk_norm needs norm = layer_norm or rms_norm");
  check(c.qk_norm != QKNorm::heads || (c.norm_gain == NormGain::gamma && !c.norm_bias), where,
        ": qk_norm = heads has a gain for each head that multiplies as it is, and no bias; set "
        "norm_gain to gamma and norm_bias to false, or qk_norm to head");
  check(c.qkv_clip == 0 || (c.position != Position::xl_relative && !c.fused_parallel), where,
        ": qkv_clip = ", c.qkv_clip,
        " has no place in position = xl_relative or fused_parallel = true; set it to 0");
  check(!c.attention_sink || !c.softmax_off_by_one, where,
        ": attention_sink is a learned score, softmax_off_by_one one that stays 0; choose one");
  check(c.qk_norm == QKNorm::none || c.position != Position::xl_relative, where,
        ": qk_norm has no place in position = xl_relative, whose queries have two biases");
}

void check_fused(const ModelConfig& c, const std::string& where) {
  if (!c.fused_parallel) return;
  check(c.parallel == Parallel::shared_norm, where,
        ": fused_parallel = true needs parallel = shared_norm: one input for one product");
  check(c.placement == Placement::pre || c.placement == Placement::none, where,
        ": fused_parallel = true needs placement = pre or none: the branches are never apart");
  check(c.residual_gain == ResidualGain::none && c.residual_dropout == 0 && c.stochastic_depth == 0,
        where, ": fused_parallel = true has one sum of both branches; set residual_gain to none, ",
        "residual_dropout and stochastic_depth to 0");
  check(c.qkv_bias == c.mlp_bias, where,
        ": fused_parallel = true has one bias of its product; set qkv_bias and mlp_bias alike");
  check(c.position != Position::xl_relative, where,
        ": fused_parallel = true has no product by distance; set position to another one than "
        "xl_relative");
  check(!c.scalar_biases, where,
        ": fused_parallel = true has one input, with no bias of each product's; set scalar_biases "
        "to false");
  check(!c.attention_sink && !c.softmax_off_by_one && !c.attention_gate, where,
        ": fused_parallel = true has neither a sink nor a gate; set attention_sink, "
        "softmax_off_by_one and attention_gate to false");
}

void check_feed_forward(const ModelConfig& c, const std::string& where) {
  const bool learned = learned_activation_parameters(c) > 0;
  check(
      !learned || (c.experts == 0 && !c.fused_parallel && !c.scalar_biases && c.gate_limit == 0 &&
                   c.gate_offset == 0 && c.layer_input_dim == 0),
      where, ": activation = ", enum_names(Activation{})[static_cast<size_t>(c.activation)],
      " has numbers that are trained, of dense layers alone; set experts, gate_limit, gate_offset "
      "and layer_input_dim to 0, fused_parallel and scalar_biases to false");
  check(!learned || c.architecture == Architecture::decoder, where,
        ": activation = ", enum_names(Activation{})[static_cast<size_t>(c.activation)],
        " needs architecture = decoder");
  check(c.gated || (c.gate_limit == 0 && c.gate_offset == 0), where,
        ": gate_limit and gate_offset need gated = true");
  const bool has_one = c.activation == Activation::swish || c.activation == Activation::elu;
  check(has_one || c.activation_parameter == 1, where,
        ": activation_parameter = ", c.activation_parameter, " needs activation = swish or elu; ",
        enum_names(Activation{})[static_cast<size_t>(c.activation)], " has none");
}

void check_experts(const ModelConfig& c, const std::string& where) {
  const ModelConfig plain;
  check(c.shared_expert_d_ff == 0 || c.shared_experts > 0, where,
        ": shared_expert_d_ff = ", c.shared_expert_d_ff, " needs shared_experts");
  check(c.experts > 0 || (c.shared_experts == 0 && c.expert_d_ff == 0 && c.load_balance_loss == 0 &&
                          c.experts_per_token == plain.experts_per_token && !c.router_bias),
        where,
        ": shared_experts, expert_d_ff, experts_per_token, router_bias and load_balance_loss need "
        "experts");
  check(c.experts > 0 || !c.router_selection_bias, where,
        ": router_selection_bias = true needs experts");
  check(c.router_selection_bias || c.router_bias_rate == 0, where,
        ": router_bias_rate = ", c.router_bias_rate, " needs router_selection_bias = true");
  if (c.experts == 0) return;
  check(!c.scalar_biases, where,
        ": scalar_biases = true needs a dense feed-forward layer; set experts to 0");
  check(!c.fused_parallel, where,
        ": fused_parallel = true needs a dense feed-forward layer; set "
        "experts to 0");
  check(c.shared_experts > 0 || !c.shared_expert_gate, where,
        ": shared_expert_gate = true needs shared_experts");
  check(!c.dense_branch || (c.placement == Placement::double_norm && c.parallel == Parallel::none),
        where,
        ": dense_branch = true has norms on both sides of the sum and of each part; set placement "
        "to double and parallel to none");
  check(c.first_expert_layer < c.layers, where, ": first_expert_layer = ", c.first_expert_layer,
        " must be below layers = ", c.layers);
  try {
    ops::MoeRouter::check_options(experts_of(c)->router, c.experts);
  } catch (const Error& e) {
    fail(where, ": ", e.what());
  }
}

nn::AttentionOptions attention_of(const ModelConfig& c, const nn::NormOptions& norm) {
  nn::AttentionOptions a;
  a.d_model = c.d_model, a.heads = c.heads, a.kv_heads = c.kv_heads, a.head_dim = c.head_dim;
  a.qkv_bias = c.qkv_bias, a.out_bias = c.attention_output_bias;
  a.fused = c.fused_qkv;
  a.dropout = c.attention_dropout;
  a.rope_pairs = c.rope_layout == RopeLayout::half ? ops::RotaryPairs::half_split
                                                   : ops::RotaryPairs::interleaved;
  a.alibi = c.position == Position::alibi ? c.alibi_scale : 0;
  a.qk_norm = {static_cast<nn::QKNorm::Width>(c.qk_norm), norm};
  a.clip = c.qkv_clip;
  a.sink = c.attention_sink, a.off_by_one = c.softmax_off_by_one, a.gate = c.attention_gate;
  return a;
}

}  // namespace

std::optional<nn::MixtureOptions> experts_of(const ModelConfig& c) {
  if (c.experts == 0) return {};
  nn::MixtureOptions o;
  o.d_model = c.d_model, o.d_ff = c.expert_d_ff, o.experts = c.experts;
  o.router.k = c.experts_per_token;
  o.router.score = static_cast<ops::RouterScore>(c.router);
  o.router_bias = c.router_bias;
  o.router.renormalise = c.router_renormalise, o.router.scale = c.router_scale;
  o.router.groups = c.router_groups, o.router.kept_groups = c.router_kept_groups;
  o.router.best_of_group = c.router_best_of_group;
  o.router_norm = c.router_norm, o.norm_eps = c.norm_eps, o.expert_scale = c.router_expert_scale;
  o.selection_bias = c.router_selection_bias, o.bias_rate = c.router_bias_rate;
  o.activation = activation_of(c.activation), o.gated = c.gated, o.bias = c.mlp_bias;
  o.parameter = c.activation_parameter, o.limit = c.gate_limit, o.offset = c.gate_offset;
  o.shared_ff = shared_expert_width(c), o.shared_gate = c.shared_expert_gate;
  return o;
}

void check_blocks(const ModelConfig& c, const std::string& where) {
  check_qk_norm(c, where);
  check_fused(c, where);
  check_experts(c, where);
  check_feed_forward(c, where);
  check_norms(c, where);
  check_residual(c, where);
}

nn::Block::Options block_options(const ModelConfig& c) {
  nn::Block::Options o;
  o.norm.kind = static_cast<nn::NormKind>(c.norm);
  o.norm.eps = c.norm_eps;
  o.norm.bias = c.norm_bias;
  o.norm.gain = static_cast<nn::NormGain>(c.norm_gain);
  o.norm.round_before_gain = c.norm_round_before_gain;
  o.placement = static_cast<nn::Placement>(c.placement);
  o.parallel = static_cast<nn::Parallel>(c.parallel);
  o.fused_parallel = c.fused_parallel;
  o.shifts = c.scalar_biases;
  o.dropout = c.residual_dropout;
  o.residual.scale = c.residual_scale;
  o.residual.gain = static_cast<nn::ResidualGain>(c.residual_gain);
  o.residual.drop = c.stochastic_depth;
  o.experts = experts_of(c), o.dense_branch = c.dense_branch;
  o.attention = attention_of(c, o.norm);
  o.latent = latent_options(c);
  o.shared = shared_options(c);
  o.layer_input = c.layer_input_dim, o.scaled = c.layer_scale;
  const MixerLayers mixers = mixer_layers(c);
  if (mixers.delta_net > 0) o.delta_net = delta_net_options(c);
  if (mixers.mamba > 0) o.mamba = mamba_options(c);
  o.mlp = {c.d_model,    c.d_ff,          activation_of(c.activation), c.gated,
           c.mlp_bias,   c.fused_gate_up, c.activation_parameter,      c.gate_limit,
           c.gate_offset};
  o.mlp.learned = learned_of(c.activation);
  return o;
}

}  // namespace tally
