#include "models/config_unused.h"

#include <algorithm>

#include "core/error.h"

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
}

}  // namespace tally
