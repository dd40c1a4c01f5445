#include "models/axes.h"

#include <algorithm>

#include "models/fields_json.h"

namespace tally {
namespace {

constexpr std::string_view kAxes[] = {
    "architecture", "norm",   "placement",      "biases",         "activation", "position",
    "attention",    "shape",  "vocabulary",     "regularisation", "stability",  "residual scale",
    "experts",      "layout", "initial values", "training",       "other"};

/// Fields that begin so lie on the axis; the first rule that fits counts.
struct Rule {
  std::string_view begin, axis;
};
constexpr Rule kRules[] = {
    {"norm_bias", "biases"},
    {"norm_", "norm"},
    {"norm", "norm"},
    {"latent_norm_eps", "norm"},
    {"placement", "placement"},
    {"final_norm", "placement"},
    {"embedding_norm", "placement"},
    {"parallel", "placement"},
    {"qkv_bias", "biases"},
    {"attention_output_bias", "biases"},
    {"mlp_bias", "biases"},
    {"head_bias", "biases"},
    {"scalar_biases", "biases"},
    {"gate", "activation"},  // gated, gate_limit, gate_offset
    {"activation", "activation"},
    {"position", "position"},
    {"sinusoid_layout", "position"},
    {"alibi_scale", "position"},
    {"t5_", "position"},
    {"rope_", "position"},
    {"context", "position"},
    {"qk_norm", "stability"},
    {"qk_", "attention"},
    {"attention_soft_cap", "stability"},
    {"attention_dropout", "regularisation"},
    {"attention", "attention"},
    {"mixer_pattern", "attention"},
    {"delta_", "attention"},
    {"mamba_", "attention"},
    {"conv_width", "attention"},
    {"window", "attention"},
    {"document_end", "attention"},
    {"kv_", "attention"},
    {"global_", "attention"},
    {"shared_kv_layers", "attention"},
    {"keys_as_values", "attention"},
    {"value_norm", "stability"},
    {"q_lora_rank", "attention"},
    {"v_head_dim", "attention"},
    {"expert", "experts"},
    {"shared_expert", "experts"},
    {"first_expert_layer", "experts"},
    {"router", "experts"},
    {"dense_branch", "experts"},
    {"load_balance_loss", "experts"},
    {"architecture", "architecture"},
    {"encoder_", "architecture"},
    {"segment_types", "architecture"},
    {"padding_id", "architecture"},
    {"layer", "shape"},  // layers, and their kinds
    {"d_model", "shape"},
    {"heads", "shape"},
    {"head_dim", "shape"},
    {"d_ff", "shape"},
    {"vocab", "vocabulary"},
    {"embedding_dim", "vocabulary"},
    {"tied_head", "vocabulary"},
    {"embedding_dropout", "regularisation"},
    {"residual_dropout", "regularisation"},
    {"stochastic_depth", "regularisation"},
    {"label_smoothing", "regularisation"},
    {"weight_decay", "regularisation"},
    {"final_soft_cap", "stability"},
    {"z_loss", "stability"},
    {"max_z", "stability"},
    {"qkv_clip", "stability"},
    {"fix_norm", "stability"},
    {"clip", "stability"},
    {"residual_", "residual scale"},
    {"embedding_scale", "residual scale"},
    {"logit_scale", "residual scale"},
    {"fused_", "layout"},
    {"init", "initial values"},
};

bool is_train_field(std::string_view name) {
  return std::ranges::any_of(train_fields(), [&](const auto& f) { return f.name == name; });
}

template <class S>
void add_differences(std::vector<FieldDifference>& out, std::string_view part,
                     std::span<const Field<S>> fields, const S& a, const S& b) {
  for (const auto& field : fields) {
    if (std::string_view(field.name) == "name") continue;
    const Json in_a = detail::field_value(a, field), in_b = detail::field_value(b, field);
    if (in_a == in_b) continue;
    const auto text = [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); };
    out.push_back(
        {axis_of(field.name), std::string(part) + "." + field.name, text(in_a), text(in_b)});
  }
}

}  // namespace

std::span<const std::string_view> axis_names() { return kAxes; }

std::string_view axis_of(std::string_view field) {
  for (const Rule& rule : kRules) {
    if (field.starts_with(rule.begin)) return rule.axis;
  }
  return is_train_field(field) ? "training" : "other";
}

std::vector<FieldDifference> differences(const RunConfig& a, const RunConfig& b) {
  std::vector<FieldDifference> all;
  add_differences(all, "model", model_fields(), a.model, b.model);
  add_differences(all, "train", train_fields(), a.train, b.train);
  const auto place = [](std::string_view axis) {
    return std::find(std::begin(kAxes), std::end(kAxes), axis) - std::begin(kAxes);
  };
  std::ranges::stable_sort(all, {}, [&](const auto& d) { return place(d.axis); });
  return all;
}

}  // namespace tally
