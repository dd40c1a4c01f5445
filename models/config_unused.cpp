#include "models/config_unused.h"

#include <algorithm>

#include "core/error.h"
#include "models/config_mixers.h"

namespace tally {
namespace {

/// Fields, and what gives them a meaning.
struct Needs {
  bool met;
  const char* what;
  std::vector<std::string_view> fields;
};

std::vector<Needs> needs_of(const ModelConfig& c) {
  const bool rope = c.position == Position::rope, yarn = c.rope_scaling == RopeScale::yarn;
  return {
      {names_attention(c),
       "attention, and mixer_pattern does not name it",
       {"attention", "attention_dropout", "attention_gate", "attention_global",
        "attention_output_bias", "attention_pattern", "attention_scale", "attention_sink",
        "attention_soft_cap", "fused_qkv", "position_pattern", "qk_norm", "qkv_bias", "qkv_clip",
        "softmax_off_by_one", "window"}},
      {c.position == Position::sinusoidal || c.position == Position::xl_relative,
       "position = sinusoidal or xl_relative",
       {"sinusoid_layout"}},
      {c.position == Position::alibi, "position = alibi", {"alibi_scale"}},
      {c.position == Position::t5_bias, "position = t5_bias", {"t5_buckets", "t5_max_distance"}},
      {rope, "position = rope", {"rope_base", "rope_fraction", "rope_layout", "rope_float32"}},
      {c.rope_scaling != RopeScale::none, "a rope_scaling", {"rope_original_context"}},
      {c.rope_scaling == RopeScale::llama3,
       "rope_scaling = llama3",
       {"rope_low_frequency", "rope_high_frequency"}},
      {yarn,
       "rope_scaling = yarn",
       {"rope_beta_fast", "rope_beta_slow", "rope_truncate", "rope_mscale", "rope_mscale_all_dim"}},
      {yarn || c.rope_scaling == RopeScale::longrope,
       "rope_scaling = yarn or longrope",
       {"rope_attention_factor"}},
      {c.experts > 0,
       "experts",
       {"shared_expert_gate", "dense_branch", "first_expert_layer", "expert_layer_every", "router",
        "router_norm", "router_expert_scale", "router_renormalise", "router_scale", "router_groups",
        "router_kept_groups", "router_best_of_group"}},
  };
}

}  // namespace

void check_all_used(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  const ModelConfig plain;
  for (const Needs& needs : needs_of(c)) {
    if (needs.met) continue;
    for (const Field<ModelConfig>& field : model_fields()) {
      if (std::ranges::find(needs.fields, field.name) == needs.fields.end()) continue;
      check(same_value(field, c, plain), where, ": ", spelling(field.name),
            " has no meaning without ", needs.what, "; leave it out, or choose that");
    }
  }
  if (names_attention(c)) return;
  check(c.position == Position::none || c.position == Position::learned ||
            c.position == Position::sinusoidal,
        where, ": position = ", enum_names(c.position)[static_cast<size_t>(c.position)],
        " changes scores of attention, and mixer_pattern does not name it; choose none, learned "
        "or sinusoidal, or name it");
  check(c.kv_heads == c.heads, where, ": ", spelling("kv_heads"), " = ", c.kv_heads,
        " are heads of attention, and mixer_pattern does not name it; leave it out");
}

}  // namespace tally
