#include "models/config_positions.h"

#include <algorithm>

#include "core/error.h"
#include "models/config_latent.h"
#include "models/suggest.h"

namespace tally {
namespace {

const std::vector<std::string> kLayerPositions = {"global", "local", "none"};

bool is_rope(const ModelConfig& c) { return c.position == Position::rope; }
std::string scaling_name(const ModelConfig& c) {
  return std::string(enum_names(RopeScale{})[static_cast<size_t>(c.rope_scaling)]);
}

/// What may turn of a head, and the field that says so.
int64_t turning_head(const ModelConfig& c) {
  return is_latent(c) ? c.qk_rope_head_dim : c.global_head_dim > 0 ? c.global_head_dim : c.head_dim;
}
const char* head_field(const ModelConfig& c) {
  return is_latent(c) ? "qk_rope_head_dim" : c.global_head_dim > 0 ? "global_head_dim" : "head_dim";
}

int64_t turning_part(const ModelConfig& c) {
  return static_cast<int64_t>(static_cast<double>(turning_head(c)) * c.rope_fraction);
}

void check_pattern(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  for (const std::string& layer : c.position_pattern) {
    check(std::find(kLayerPositions.begin(), kLayerPositions.end(), layer) != kLayerPositions.end(),
          where, ": ", spelling("position_pattern"), ": \"", layer, "\" is not known",
          did_you_mean(layer, kLayerPositions));
    check(layer != "local" || is_rope(c), where, ": ", spelling("position_pattern"),
          ": local layers have rotary positions; they need position = rope");
  }
  const bool of_layers =
      is_rope(c) || c.position == Position::alibi || c.position == Position::t5_bias;
  check(c.position_pattern.empty() || of_layers, where, ": ", spelling("position_pattern"),
        " is for positions that every layer has: rope, alibi or t5_bias; here position adds to the "
        "embedding, once");
}

/// Fields that would be ignored are a mistake.
void check_unused(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  const ModelConfig plain;
  check(c.position == Position::learned || c.position_offset == 0, where, ": ",
        spelling("position_offset"), " = ", c.position_offset, " needs position = learned");
  check(c.rope_factor == plain.rope_factor || (is_rope(c) && c.rope_scaling != RopeScale::none),
        where, ": ", spelling("rope_factor"), " = ", c.rope_factor,
        " needs position = rope and a rope_scaling; set it to 1, or say which");
  check(c.rope_scaling == RopeScale::none || is_rope(c), where, ": ", spelling("rope_scaling"),
        " = ", scaling_name(c), " needs position = rope");
  const bool lists = !c.rope_short_factors.empty() || !c.rope_long_factors.empty();
  check(!lists || c.rope_scaling == RopeScale::longrope, where,
        ": rope_short_factors and rope_long_factors need rope_scaling = longrope");
}

void check_rotation(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  const int64_t head = turning_head(c);
  const std::string field = spelling(head_field(c));
  check(head % 2 == 0 || c.rope_fraction < 1, where, ": ", field, " = ", head,
        " must be even for rotary positions, which turn pairs of coordinates", "; make it ",
        head + 1);
  const int64_t part = turning_part(c);
  check(c.rope_scaling == RopeScale::proportional ? head % 2 == 0 : part >= 2 && part % 2 == 0,
        where, ": ", spelling("rope_fraction"), " = ", c.rope_fraction, " of ", field, " = ", head,
        " makes ", part, " coordinates turn; that must be an even number from 2");
}

void check_scaling(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  const bool needs_original =
      c.rope_scaling == RopeScale::dynamic_ntk || c.rope_scaling == RopeScale::yarn ||
      c.rope_scaling == RopeScale::llama3 || c.rope_scaling == RopeScale::longrope;
  check(!needs_original || c.rope_original_context >= 1, where,
        ": rope_scaling = ", scaling_name(c), " needs ", spelling("rope_original_context"),
        ": the tokens of a text before the scaling");
  const int64_t pairs = rotary_dim(c) / 2;
  for (const auto* list : {&c.rope_short_factors, &c.rope_long_factors}) {
    check(c.rope_scaling != RopeScale::longrope || static_cast<int64_t>(list->size()) == pairs,
          where, ": longrope needs a number for each of the ", pairs, " pairs in ",
          list == &c.rope_short_factors ? "rope_short_factors" : "rope_long_factors", "; it has ",
          list->size());
  }
  // The rest is said by the function that uses it.
  try {
    const nn::PositionOptions o = position_options(c);
    rope_turns(rotary_dim(c), o.base, o.scaling, c.context, o.arithmetic);
  } catch (const Error& e) {
    fail(where, ": ", e.what());
  }
}

}  // namespace

int64_t rotary_dim(const ModelConfig& c) {
  return c.rope_scaling == RopeScale::proportional ? turning_head(c) : turning_part(c);
}

void check_positions(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  check_pattern(c, where, spelling);
  check_unused(c, where, spelling);
  if (is_rope(c)) {
    check_rotation(c, where, spelling);
    check_scaling(c, where, spelling);
  }
  check(c.position != Position::sinusoidal ||
            (c.d_model % 2 == 0 && (c.d_model > 2 || c.sinusoid_layout != SinusoidLayout::fairseq)),
        where, ": ", spelling("d_model"), " = ", c.d_model,
        " must be even for sinusoidal positions, a sine and a cosine for each frequency",
        " (and above 2 for fairseq)");
  check(c.position != Position::xl_relative || c.d_model % 2 == 0, where, ": ", spelling("d_model"),
        " = ", c.d_model,
        " must be even for xl_relative, whose distances are sinusoids of that width");
  if (c.position != Position::t5_bias) return;
  const bool two_sided = c.architecture != Architecture::decoder;  // half of them for each side
  const int64_t exact = c.t5_buckets / (two_sided ? 4 : 2);
  check(exact >= 1 && c.t5_max_distance > exact, where, ": ", spelling("t5_max_distance"), " = ",
        c.t5_max_distance, " must be above the ", exact,
        " distances with a bucket of their own, a ", two_sided ? "quarter" : "half", " of ",
        spelling("t5_buckets"), " = ", c.t5_buckets, ", which must be 1 or more");
  const auto none = [](const std::string& layer) { return layer == "none"; };
  check(c.position_pattern.empty() || !std::ranges::all_of(c.position_pattern, none), where, ": ",
        spelling("position_pattern"), " leaves no layer that position = t5_bias could add to");
}

nn::PositionOptions position_options(const ModelConfig& c) {
  nn::PositionOptions o;
  o.kind = static_cast<nn::PositionKind>(c.position);
  for (const std::string& layer : c.position_pattern) {
    const auto at = std::find(kLayerPositions.begin(), kLayerPositions.end(), layer);
    o.layers.push_back(static_cast<nn::LayerPositions>(at - kLayerPositions.begin()));
  }
  o.offset = c.position_offset;
  o.sinusoid = static_cast<Sinusoid>(c.sinusoid_layout);
  o.base = c.rope_base, o.local_base = c.rope_local_base;
  o.rotary_dim = rotary_dim(c);
  // Heads of a size of their own turn whole.
  o.local_rotary_dim = c.global_head_dim > 0 ? c.head_dim : o.rotary_dim;
  RopeScaling& s = o.scaling;
  s.kind = static_cast<RopeScalingKind>(c.rope_scaling);
  s.factor = c.rope_factor, s.original_context = c.rope_original_context;
  s.low_frequency = c.rope_low_frequency, s.high_frequency = c.rope_high_frequency;
  s.beta_fast = c.rope_beta_fast, s.beta_slow = c.rope_beta_slow, s.truncate = c.rope_truncate;
  s.attention_factor = c.rope_attention_factor;
  s.mscale = c.rope_mscale, s.mscale_all_dim = c.rope_mscale_all_dim;
  s.short_factors = c.rope_short_factors, s.long_factors = c.rope_long_factors;
  s.fraction = c.rope_fraction;
  o.arithmetic = c.rope_float32 ? RopeArithmetic::float32 : RopeArithmetic::float64;
  o.buckets = c.t5_buckets, o.max_distance = c.t5_max_distance;
  return o;
}

}  // namespace tally
