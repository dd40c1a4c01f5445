#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/fields.h"
#include "optim/choices.h"
#include "optim/schedule.h"

namespace tally {

enum class Architecture : uint8_t { decoder, encoder, encoder_decoder };
enum class AttentionKind : uint8_t { heads, latent, shared };
enum class Norm : uint8_t { layer_norm, rms_norm, scale_norm };
enum class NormGain : uint8_t { gamma, one_plus_gamma, none };
enum class Placement : uint8_t { pre, post, double_norm, output, none };
enum class FinalNorm : uint8_t { automatic, on, off };
enum class FixNorm : uint8_t { none, head, both };
enum class Parallel : uint8_t { none, shared_norm, two_norms };
enum class ResidualGain : uint8_t { none, scalar, vector };
enum class QKNorm : uint8_t { none, head, full, heads };
enum class Router : uint8_t { softmax, sigmoid };
enum class Activation : uint8_t {
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
  softplus,
  identity,
  learned_swish,
  xielu
};
enum class Position : uint8_t { none, learned, rope, sinusoidal, alibi, t5_bias, xl_relative };
enum class RopeLayout : uint8_t { half, interleaved };
enum class RopeScale : uint8_t {
  none,
  linear,
  ntk,
  dynamic_ntk,
  yarn,
  llama3,
  longrope,
  proportional
};
enum class SinusoidLayout : uint8_t { interleaved, halves, fairseq };
enum class Init : uint8_t { normal, gpt2, trunc_normal, xavier, mitchell, fixup };
using optim::Bf16Update;
using optim::Decay;
using optim::MuonScaling;
using optim::OptimizerKind;
using optim::Schedule;
using optim::ScheduleUnit;

std::span<const std::string_view> enum_names(Architecture);
std::span<const std::string_view> enum_names(AttentionKind);
std::span<const std::string_view> enum_names(Norm);
std::span<const std::string_view> enum_names(NormGain);
std::span<const std::string_view> enum_names(Placement);
std::span<const std::string_view> enum_names(FinalNorm);
std::span<const std::string_view> enum_names(FixNorm);
std::span<const std::string_view> enum_names(Parallel);
std::span<const std::string_view> enum_names(ResidualGain);
std::span<const std::string_view> enum_names(QKNorm);
std::span<const std::string_view> enum_names(Router);
std::span<const std::string_view> enum_names(Activation);
std::span<const std::string_view> enum_names(Position);
std::span<const std::string_view> enum_names(RopeLayout);
std::span<const std::string_view> enum_names(RopeScale);
std::span<const std::string_view> enum_names(SinusoidLayout);
std::span<const std::string_view> enum_names(Init);

/// How a field is called in an error: our name, or what the file that it came from calls it.
using Spelling = std::function<std::string(std::string_view)>;
/// Our own names.
std::string own_spelling(std::string_view field);

/// A language model: one struct, a field for every choice. What each field means, its
/// range and its name in JSON stand once, in model_fields().
struct ModelConfig {
  std::string name;

  int64_t layers = 0, d_model = 0, heads = 0;
  int64_t kv_heads = 0;       // 0: as many as heads
  int64_t head_dim = 0;       // 0: d_model / heads, or what latent attention says
  int64_t embedding_dim = 0;  // 0: d_model
  int64_t d_ff = 0;           // 0: 4 d_model; gated: 8/3 d_model, rounded up to a multiple of 64
  int64_t vocab = 0, context = 0;

  // Checked and made into modules by models/architecture.h.
  Architecture architecture = Architecture::decoder;
  int64_t encoder_layers = 0, encoder_heads = 0, encoder_d_ff = 0;  // 0: as the decoder's
  int64_t segment_types = 0, padding_id = -1;

  // Checked and made into options by models/config_latent.h. Sizes 0: none.
  AttentionKind attention = AttentionKind::heads;
  int64_t q_lora_rank = 0, kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  double latent_norm_eps = 1e-6;
  // Checked and made into options by models/config_shared.h. Sizes 0: as the other layers'; none.
  int64_t global_head_dim = 0, global_kv_heads = 0, shared_kv_layers = 0;
  int64_t shared_kv_d_ff = 0;
  bool keys_as_values = false, value_norm = false;
  int64_t layer_input_dim = 0;
  bool layer_scale = false;

  // Checked and made into options by models/config_mixers.h. Sizes 0: derived, or none.
  std::vector<std::string> mixer_pattern;  // of attention, delta, mamba; empty: all attention
  int64_t delta_key_heads = 0, delta_value_heads = 0, delta_key_dim = 0, delta_value_dim = 0;
  int64_t mamba_inner = 0, mamba_state = 0, mamba_dt_rank = 0;
  bool mamba_norms = false, mamba_conv_bias = true;
  int64_t conv_width = 0;

  Norm norm = Norm::rms_norm;
  double norm_eps = 1e-5;
  bool norm_bias = false;
  NormGain norm_gain = NormGain::gamma;
  bool norm_round_before_gain = false;
  // Checked and made into layers by models/config_blocks.h.
  Placement placement = Placement::pre;
  FinalNorm final_norm = FinalNorm::automatic;
  bool embedding_norm = false;
  FixNorm fix_norm = FixNorm::none;
  QKNorm qk_norm = QKNorm::none;
  Parallel parallel = Parallel::none;
  bool fused_parallel = false;
  double residual_scale = 1;
  std::vector<double> residual_scales;  // by layer
  ResidualGain residual_gain = ResidualGain::none;
  double residual_gain_init = 0;
  double stochastic_depth = 0;
  bool scalar_biases = false;

  Activation activation = Activation::silu;
  double activation_parameter = 1;
  bool gated = true;
  double gate_limit = 0, gate_offset = 0;

  // A mixture of experts in place of the feed-forward layer; experts 0: none.
  int64_t experts = 0, experts_per_token = 2;
  int64_t expert_d_ff = 0;  // 0: d_ff
  int64_t shared_experts = 0;
  int64_t shared_expert_d_ff = 0;  // 0: expert_d_ff
  bool shared_expert_gate = false;
  bool dense_branch = false;
  int64_t first_expert_layer = 0, expert_layer_every = 1;
  Router router = Router::softmax;
  bool router_bias = false;
  bool router_norm = false, router_expert_scale = false;
  bool router_renormalise = true;
  double router_scale = 1;
  int64_t router_groups = 1, router_kept_groups = 1, router_best_of_group = 1;
  bool router_selection_bias = false;
  double router_bias_rate = 0;
  double load_balance_loss = 0;

  // Checked and made into tables by models/config_positions.h.
  Position position = Position::rope;
  std::vector<std::string> position_pattern;  // of global, local, none; empty: all global
  int64_t position_offset = 0;
  SinusoidLayout sinusoid_layout = SinusoidLayout::interleaved;
  double alibi_scale = 1;
  int64_t t5_buckets = 32, t5_max_distance = 128;
  double rope_base = 10000, rope_local_base = 10000, rope_fraction = 1;
  RopeLayout rope_layout = RopeLayout::half;
  RopeScale rope_scaling = RopeScale::none;
  double rope_factor = 1;
  int64_t rope_original_context = 0;
  double rope_low_frequency = 1, rope_high_frequency = 4;
  double rope_beta_fast = 32, rope_beta_slow = 1;
  bool rope_truncate = true;
  double rope_attention_factor = 0, rope_mscale = 0, rope_mscale_all_dim = 0;
  std::vector<double> rope_short_factors, rope_long_factors;
  bool rope_float32 = false;

  // Checked and made into options by models/config_attention.h.
  int64_t window = 0;                          // 0: none
  std::vector<std::string> attention_pattern;  // of full, window, strided, fixed; empty: all alike
  int64_t attention_stride = 0, attention_summary = 1;
  int64_t attention_global = 0, attention_prefix = 0;
  int64_t document_end = -1;                           // a token; -1: none
  double attention_soft_cap = 0, attention_scale = 0;  // 0: none; 1 / sqrt(head_dim)
  bool attention_sink = false, softmax_off_by_one = false, attention_gate = false;
  double qkv_clip = 0;  // 0: none

  bool qkv_bias = false, attention_output_bias = false, mlp_bias = false, head_bias = false;
  bool tied_head = false;
  bool fused_qkv = true, fused_gate_up = true;

  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  double embedding_scale = 1, logit_scale = 1, final_soft_cap = 0;
  double label_smoothing = 0, z_loss = 0, max_z_loss = 0;

  Init init = Init::normal;
  double init_std = 0.02;
  int64_t mup_base_width = 0, mup_base_head_dim = 0;  // models/mup.h; 0: no muP; head_dim

  bool operator==(const ModelConfig&) const = default;

  /// Width of the embedding and the head.
  int64_t embedding_width() const { return embedding_dim > 0 ? embedding_dim : d_model; }
  /// Layers of an encoder and its decoder together, of a resolved model.
  int64_t all_layers() const { return encoder_layers + layers; }

  /// Fills in what is derived from other fields (kv_heads, head_dim, d_ff where they are 0).
  /// Throws Error if d_model cannot be divided by heads.
  void resolve(const std::string& where = "model", const Spelling& spelling = own_spelling);

  /// Throws Error, beginning with `where`, unless this is a resolved model that can be built.
  void check(const std::string& where = "model", const Spelling& spelling = own_spelling) const;
};

/// How a model is trained. Fields: train_fields().
struct TrainConfig {
  int64_t batch = 8;
  int64_t seq = 0;  // 0: the model's context
  int64_t accumulation = 1, steps = 1000;
  int64_t accumulation_start = 0, ramp_steps = 0;  // 0: no ramp
  double lr = 1e-3, final_lr_fraction = 0.1;
  int64_t warmup = 100;
  double warmup_from = 0;
  Schedule schedule = Schedule::cosine;
  ScheduleUnit schedule_unit = ScheduleUnit::steps;
  Decay decay = Decay::linear;                  // of wsd
  double decay_fraction = 0.2;                  // of wsd
  std::vector<double> milestones = {0.8, 0.9};  // of multi_step
  double milestone_factor = 0.316;              // of multi_step
  OptimizerKind optimizer = OptimizerKind::adamw;
  double momentum = 0.95;
  bool nesterov = true, amsgrad = false;
  MuonScaling muon_scaling = MuonScaling::match_rms;
  int64_t precondition_every = 10, precondition_longest = 8192;
  double rest_lr_scale = 1;
  Bf16Update bf16_update = Bf16Update::masters;  // of a model in bf16
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, clip = 1;
  int64_t seed = 1;
  int64_t log_every = 10, eval_every = 100, eval_batches = 20, checkpoint_every = 500;
  int64_t keep_checkpoints = 2;
  // Used by models/early_stop.h.
  bool keep_best = false;
  int64_t patience = 0;  // evaluations; 0: no early stop
  double min_delta = 0;
  // Used by models/step_guard.h; 0: off.
  double skip_deviations = 0, spike_factor = 0;
  int64_t guard_window = 64, rollback_after = 0;
  int64_t sample_every = 0, sample_tokens = 100;
  // What encoders and encoder-decoders are asked; checked and used by models/objective.h.
  double corruption = 0.15, mean_span = 3;
  int64_t sentinels = 100;
  bool pairs = false;  // of a text and what is to be written for it: data/translation_pairs.h
  double val_fraction = 0.1;
  std::string recompute = "none";   // models/recompute.h
  std::vector<std::string> probes;  // of probe_names()

  bool operator==(const TrainConfig&) const = default;

  /// Throws Error unless the values are in range and agree with the model.
  void check(const ModelConfig& model, const std::string& where = "train") const;
};

/// A whole configuration document: {"model": {...}, "train": {...}}.
struct RunConfig {
  ModelConfig model;
  TrainConfig train;

  bool operator==(const RunConfig&) const = default;
  /// Fills in derived fields, then checks. Errors begin with `where`, such as the file's name.
  void resolve_and_check(const std::string& where = "");
};

/// What can be measured on logged steps; see models/probes.h.
std::span<const std::string_view> probe_names();

std::span<const Field<ModelConfig>> model_fields();
std::span<const Field<TrainConfig>> train_fields();

}  // namespace tally
