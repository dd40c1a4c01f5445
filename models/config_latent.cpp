#include "models/config_latent.h"

#include <cmath>

#include "core/error.h"
#include "models/config_positions.h"

namespace tally {
namespace {

void check_sizes(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  const std::pair<const char*, int64_t> sizes[] = {{"kv_lora_rank", c.kv_lora_rank},
                                                   {"qk_nope_head_dim", c.qk_nope_head_dim},
                                                   {"qk_rope_head_dim", c.qk_rope_head_dim},
                                                   {"v_head_dim", c.v_head_dim}};
  for (const auto& [field, size] : sizes)
    check(size >= 1, where, ": ", spelling(field), " must be 1 or more for attention = latent");
  check(c.qk_rope_head_dim % 2 == 0, where, ": ", spelling("qk_rope_head_dim"), " = ",
        c.qk_rope_head_dim, " must be even: it turns in pairs; make it ", c.qk_rope_head_dim + 1);
  check(c.head_dim == c.qk_nope_head_dim + c.qk_rope_head_dim, where, ": ", spelling("head_dim"),
        " = ", c.head_dim, " must be ", spelling("qk_nope_head_dim"), " + ",
        spelling("qk_rope_head_dim"), " = ", c.qk_nope_head_dim + c.qk_rope_head_dim,
        " for attention = latent; leave it out");
}

// Choices of heads that have keys and values of their own.
void check_unused_by_latent(const ModelConfig& c, const std::string& where) {
  const auto refuse = [&](bool given, const char* field, const char* value) {
    check(!given, where, ": ", field, " has no meaning for attention = latent; set it to ", value);
  };
  refuse(c.kv_heads != c.heads, "kv_heads", "0");
  refuse(c.qkv_bias, "qkv_bias", "false");
  refuse(c.attention_output_bias, "attention_output_bias", "false");
  refuse(c.qkv_clip != 0, "qkv_clip", "0");
  refuse(c.attention_gate, "attention_gate", "false");
  refuse(c.fused_parallel, "fused_parallel", "false");
  refuse(c.scalar_biases, "scalar_biases", "false");
  refuse(c.rope_fraction != 1 && c.rope_scaling != RopeScale::proportional, "rope_fraction", "1");
  check(c.qk_norm == QKNorm::none, where,
        ": qk_norm needs keys of each head, which decoding from a latent never makes; for "
        "attention = latent the norms of the latents stand in its place: set it to none");
  check(c.position != Position::alibi && c.position != Position::xl_relative, where,
        ": attention = latent has position = none, learned, sinusoidal, rope or t5_bias; got ",
        enum_names(c.position)[static_cast<size_t>(c.position)]);
}

}  // namespace

void check_latent(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  if (is_latent(c)) {
    check_sizes(c, where, spelling);
    check_unused_by_latent(c, where);
    return;
  }
  const std::pair<const char*, bool> fields[] = {
      {"q_lora_rank", c.q_lora_rank != 0},
      {"kv_lora_rank", c.kv_lora_rank != 0},
      {"qk_nope_head_dim", c.qk_nope_head_dim != 0},
      {"qk_rope_head_dim", c.qk_rope_head_dim != 0},
      {"v_head_dim", c.v_head_dim != 0},
      {"latent_norm_eps", c.latent_norm_eps != ModelConfig().latent_norm_eps}};
  for (const auto& [field, given] : fields)
    check(!given, where, ": ", spelling(field),
          " needs attention = latent; leave it out, or choose that");
}

std::optional<nn::LatentAttentionOptions> latent_options(const ModelConfig& c) {
  if (!is_latent(c)) return {};
  nn::LatentAttentionOptions o;
  o.d_model = c.d_model, o.heads = c.heads;
  o.q_lora_rank = c.q_lora_rank, o.kv_lora_rank = c.kv_lora_rank;
  o.qk_nope_head_dim = c.qk_nope_head_dim, o.qk_rope_head_dim = c.qk_rope_head_dim;
  o.v_head_dim = c.v_head_dim;
  o.norm_eps = c.latent_norm_eps, o.norm_gain = static_cast<nn::NormGain>(c.norm_gain);
  o.dropout = c.attention_dropout;
  o.sink = c.attention_sink, o.off_by_one = c.softmax_off_by_one;
  o.rope_pairs = c.rope_layout == RopeLayout::half ? ops::RotaryPairs::half_split
                                                   : ops::RotaryPairs::interleaved;
  const double plain =
      c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_dim));
  const bool turns = c.position == Position::rope;
  o.scale = plain * (turns ? rope_softmax_scale(position_options(c).scaling) : 1);
  return o;
}

LatentCounts latent_counts(const ModelConfig& c) {
  if (!is_latent(c)) return {};
  const int64_t d = c.d_model, h = c.heads, rank = c.q_lora_rank, q = h * c.head_dim;
  LatentCounts n;
  n.matrices = (rank > 0 ? rank * (d + q) : q * d) + (c.kv_lora_rank + c.qk_rope_head_dim) * d +
               h * (c.qk_nope_head_dim + c.v_head_dim) * c.kv_lora_rank + d * h * c.v_head_dim;
  if (c.norm_gain != NormGain::none) n.norms = rank + c.kv_lora_rank;
  return n;
}

double latent_bound(const ModelConfig& c) {
  const double d = double(c.d_model), h = double(c.heads), k = double(c.head_dim),
               m = double(c.v_head_dim), latent = double(c.kv_lora_rank);
  return double(c.q_lora_rank) * (d + h * k) + (latent + k) * d + h * (k + m) * latent + d * h * m;
}

}  // namespace tally
