#include "models/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "models/architecture.h"
#include "models/config_attention.h"
#include "models/config_blocks.h"
#include "models/config_latent.h"
#include "models/config_mixers.h"
#include "models/config_positions.h"
#include "models/config_shared.h"
#include "models/config_unused.h"
#include "models/mup.h"
#include "models/objective.h"
#include "models/parameters.h"
#include "models/recompute.h"
#include "models/suggest.h"

namespace tally {
namespace {

template <size_t N>
using Names = std::string_view[N];

constexpr Names<3> kArchitectures = {"decoder", "encoder", "encoder_decoder"};
constexpr Names<3> kAttentionKinds = {"heads", "latent", "shared"};
constexpr Names<3> kNorms = {"layer_norm", "rms_norm", "scale_norm"};
constexpr Names<3> kNormGains = {"gamma", "one_plus_gamma", "none"};
constexpr Names<5> kPlacements = {"pre", "post", "double", "output", "none"};
constexpr Names<3> kFinalNorms = {"auto", "on", "off"};
constexpr Names<3> kFixNorms = {"none", "head", "both"};
constexpr Names<3> kParallels = {"none", "shared_norm", "two_norms"};
constexpr Names<4> kQKNorms = {"none", "head", "full", "heads"};
constexpr Names<2> kRouters = {"softmax", "sigmoid"};
constexpr Names<3> kResidualGains = {"none", "scalar", "vector"};
constexpr Names<14> kActivations = {
    "relu", "squared_relu", "gelu", "gelu_tanh", "silu",     "swish",         "sigmoid",
    "tanh", "elu",          "selu", "softplus",  "identity", "learned_swish", "xielu"};
constexpr Names<7> kPositions = {"none",  "learned", "rope",       "sinusoidal",
                                 "alibi", "t5_bias", "xl_relative"};
constexpr Names<2> kRopeLayouts = {"half", "interleaved"};
constexpr Names<8> kRopeScales = {"none", "linear", "ntk",      "dynamic_ntk",
                                  "yarn", "llama3", "longrope", "proportional"};
constexpr Names<3> kSinusoidLayouts = {"interleaved", "halves", "fairseq"};
constexpr Names<6> kInits = {"normal", "gpt2", "trunc_normal", "xavier", "mitchell", "fixup"};
constexpr Names<12> kProbes = {"residual_rms", "sublayer_rms",      "log_z",
                               "max_logit",    "attention_entropy", "attention_saturation",
                               "grad_norm",    "update_ratio",      "router_load",
                               "noise_scale",  "update_rank",       "momentum_rank"};

/// Beyond this no machine stores the weights, and products of sizes would leave 64 bits.
constexpr double kMaxParameters = 1e15;

/// "1, 2, 3, 4, 6 or 12"
std::string divisors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n && found.size() < 24; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  std::string text;
  for (size_t i = 0; i < found.size(); ++i) {
    text += i == 0 ? "" : i + 1 == found.size() ? " or " : ", ";
    text += std::to_string(found[i]);
  }
  return text;
}

template <class S>
void check_ranges(std::span<const Field<S>> fields, const S& values, const std::string& where,
                  const Spelling& spelling) {
  for (const Field<S>& field : fields) {
    double value = field.min;
    if (auto* member = std::get_if<int64_t S::*>(&field.member)) {
      value = static_cast<double>(values.*(*member));
    } else if (auto* real = std::get_if<double S::*>(&field.member)) {
      value = values.*(*real);
    }
    check(value >= field.min && value <= field.max, where, ": ", spelling(field.name),
          " must lie between ", field.min, " and ", field.max, "; it is ", value, " (", field.doc,
          ")");
  }
}

}  // namespace

std::span<const std::string_view> enum_names(Architecture) { return kArchitectures; }
std::span<const std::string_view> enum_names(AttentionKind) { return kAttentionKinds; }
std::span<const std::string_view> enum_names(Norm) { return kNorms; }
std::span<const std::string_view> enum_names(NormGain) { return kNormGains; }
std::span<const std::string_view> enum_names(Placement) { return kPlacements; }
std::span<const std::string_view> enum_names(FinalNorm) { return kFinalNorms; }
std::span<const std::string_view> enum_names(FixNorm) { return kFixNorms; }
std::span<const std::string_view> enum_names(Parallel) { return kParallels; }
std::span<const std::string_view> enum_names(ResidualGain) { return kResidualGains; }
std::span<const std::string_view> enum_names(QKNorm) { return kQKNorms; }
std::span<const std::string_view> enum_names(Router) { return kRouters; }
std::span<const std::string_view> enum_names(Activation) { return kActivations; }
std::span<const std::string_view> enum_names(Position) { return kPositions; }
std::span<const std::string_view> enum_names(RopeLayout) { return kRopeLayouts; }
std::span<const std::string_view> enum_names(RopeScale) { return kRopeScales; }
std::span<const std::string_view> enum_names(SinusoidLayout) { return kSinusoidLayouts; }
std::span<const std::string_view> enum_names(Init) { return kInits; }

std::span<const std::string_view> probe_names() { return kProbes; }

std::string own_spelling(std::string_view field) { return std::string(field); }

void ModelConfig::resolve(const std::string& where, const Spelling& spelling) {
  if (kv_heads == 0) kv_heads = heads;
  if (head_dim == 0 && is_latent(*this)) head_dim = qk_nope_head_dim + qk_rope_head_dim;
  if (head_dim == 0 && heads > 0) {
    tally::check(d_model % heads == 0, where, ": ", spelling("d_model"), " = ", d_model,
                 " must be a multiple of ", spelling("heads"), " = ", heads, " unless ",
                 spelling("head_dim"), " is given; set ", spelling("heads"), " to ",
                 divisors(d_model), ", or give ", spelling("head_dim"));
    head_dim = d_model / heads;
  }
  if (final_norm == FinalNorm::automatic) {
    const bool on = placement != Placement::post && placement != Placement::none;
    final_norm = on ? FinalNorm::on : FinalNorm::off;
  }
  if (d_ff == 0) d_ff = gated ? (8 * d_model / 3 + 63) / 64 * 64 : 4 * d_model;
  if (experts > 0 && expert_d_ff == 0) expert_d_ff = d_ff;
  resolve_mixers(*this);
  if (architecture == Architecture::encoder_decoder) {
    if (encoder_layers == 0) encoder_layers = layers;
    if (encoder_heads == 0) encoder_heads = heads;
    if (encoder_d_ff == 0) encoder_d_ff = d_ff;
  }
}

void ModelConfig::check(const std::string& where, const Spelling& spelling) const {
  check_ranges(model_fields(), *this, where, spelling);
  tally::check(kv_heads > 0 && head_dim > 0 && d_ff > 0, where,
               ": kv_heads, head_dim and d_ff are not filled in; call resolve() first");
  tally::check(heads % kv_heads == 0, where, ": ", spelling("heads"), " = ", heads,
               " must be a multiple of ", spelling("kv_heads"), " = ", kv_heads, "; set ",
               spelling("kv_heads"), " to ", divisors(heads));
  check_latent(*this, where, spelling);
  check_shared(*this, where, spelling);
  check_mixers(*this, where, spelling);
  check_positions(*this, where, spelling);
  check_attention(*this, where, spelling);
  check_blocks(*this, where);
  check_architecture(*this, where);
  check_all_used(*this, where, spelling);
  check_mup(*this, where);
  // In double: the sizes alone may already leave 64 bits.
  const double head = double(std::max(head_dim, global_head_dim)), d = double(d_model),
               width = head * double(heads + std::max(kv_heads, global_kv_heads)) * 2;
  const double weights =
      double(layers) * (width * d + 3 * d * double(d_ff) +
                        3 * d * double(std::max(expert_d_ff, shared_expert_d_ff)) *
                            double(experts + shared_experts)) +
      2 * double(vocab) * d + double(context + position_offset) * d + encoder_bound(*this) +
      double(layers) * (latent_bound(*this) + mixer_bound(*this) +
                        double(layer_input_dim) * (double(vocab) + 3 * d));
  tally::check(weights < kMaxParameters, where, ": the model would have about ", weights,
               " parameters; at most ", kMaxParameters, " can be counted");
}

void TrainConfig::check(const ModelConfig& model, const std::string& where) const {
  check_ranges(train_fields(), *this, where, own_spelling);
  tally::check(seq <= model.context, where, ": seq = ", seq,
               " must not exceed model.context = ", model.context, "; set seq to at most ",
               model.context, ", or raise model.context");
  // A step without a target that counts would train nothing and still decay the weights.
  tally::check(seq == 0 || seq > model.attention_prefix, where, ": seq = ", seq,
               " must be above model.attention_prefix = ", model.attention_prefix,
               ", whose tokens are no targets; raise seq");
  for (const std::string& probe : probes) {
    const auto all = probe_names();
    tally::check(std::find(all.begin(), all.end(), probe) != all.end(), where, ": probes: \"",
                 probe, "\" is not known",
                 did_you_mean(probe, std::vector<std::string>(all.begin(), all.end())));
    tally::check(
        probe != "noise_scale" || accumulation >= 2, where,
        ": probes: noise_scale compares a forward pass with all of a step; set accumulation "
        "to 2 or more");
  }
  tally::check(warmup <= steps, where, ": warmup = ", warmup, " must not exceed steps = ", steps,
               "; set warmup to about ", (steps + 19) / 20);
  check_mup(model, *this, where);
  recompute_layers(recompute, model.all_layers(), where);
  check_objective(model, *this, where);
  tally::check(
      accumulation_start <= accumulation, where, ": accumulation_start = ", accumulation_start,
      " must not exceed accumulation = ", accumulation, ", which it grows to in ramp_steps");
  tally::check(
      schedule_unit == ScheduleUnit::steps || schedule != Schedule::noam, where,
      ": schedule_unit = tokens has no meaning for schedule = noam, whose rate is a function "
      "of the number of the step; set schedule_unit to steps, or another schedule");
  for (const double m : milestones) {
    tally::check(m >= 0 && m <= 1, where, ": milestones are shares of the steps, 0 to 1; got ", m);
  }
}

void RunConfig::resolve_and_check(const std::string& where) {
  const std::string prefix = where.empty() ? "" : where + ": ";
  model.resolve(prefix + "model");
  model.check(prefix + "model");
  if (train.seq == 0) train.seq = model.context;
  train.check(model, prefix + "train");
}

}  // namespace tally
