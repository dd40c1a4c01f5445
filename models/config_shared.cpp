#include "models/config_shared.h"

#include "core/error.h"
#include "models/config_attention.h"

namespace tally {
namespace {

bool has_window(const ModelConfig& c, int64_t layer) {
  const auto& kinds = c.attention_pattern;
  if (kinds.empty()) return c.window > 0;
  return kinds[static_cast<size_t>(layer) % kinds.size()] == "window";
}

// A layer takes what the last one before it of its kind has made.
void check_makers(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  check(c.shared_kv_layers < c.layers, where, ": ", spelling("shared_kv_layers"), " = ",
        c.shared_kv_layers, " must be below layers = ", c.layers,
        ": somebody has to make the keys and values");
  const int64_t makers = c.layers - c.shared_kv_layers;
  for (int64_t i = makers; i < c.layers; ++i) {
    bool found = false;
    for (int64_t j = 0; j < makers; ++j) found = found || has_window(c, j) == has_window(c, i);
    check(found, where, ": ", spelling("shared_kv_layers"), " = ", c.shared_kv_layers, ": layer ",
          i, has_window(c, i) ? " has a window" : " sees all", ", and no layer before ", makers,
          " does, whose keys and values it could take");
  }
}

// The tables of rotary positions are as wide as the heads that turn.
void check_tables(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  if (c.position != Position::rope || c.global_head_dim == 0 || c.global_head_dim == c.head_dim)
    return;
  check(c.head_dim % 2 == 0, where, ": ", spelling("head_dim"), " = ", c.head_dim,
        " must be even: it turns in pairs; make it ", c.head_dim + 1);
  const auto& places = c.position_pattern;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string place =
        places.empty() ? "global" : places[static_cast<size_t>(i) % places.size()];
    check(place == "none" || (place == "local") == has_window(c, i), where, ": ",
          spelling("global_head_dim"), " = ", c.global_head_dim, ": the heads of layer ", i, ", ",
          layer_shape(c, i).head_dim, " wide, would take the positions of the other layers; let ",
          spelling("position_pattern"),
          " be local where attention_pattern is window, and there alone");
  }
}

void check_unused_by_shared(const ModelConfig& c, const std::string& where) {
  const auto refuse = [&](bool given, const char* field, const char* value) {
    check(!given, where, ": ", field, " has no place in attention = shared; set it to ", value);
  };
  refuse(c.qkv_bias, "qkv_bias", "false");
  refuse(c.attention_output_bias, "attention_output_bias", "false");
  refuse(c.qk_norm == QKNorm::full || c.qk_norm == QKNorm::heads, "qk_norm", "head or none");
  refuse(c.norm != Norm::rms_norm && c.qk_norm != QKNorm::none, "qk_norm with norm",
         "none, or norm to rms_norm");
  refuse(c.qkv_clip != 0, "qkv_clip", "0");
  refuse(c.attention_sink, "attention_sink", "false");
  refuse(c.softmax_off_by_one, "softmax_off_by_one", "false");
  refuse(c.attention_gate, "attention_gate", "false");
  refuse(c.fused_parallel, "fused_parallel", "false");
  refuse(c.scalar_biases, "scalar_biases", "false");
  refuse(c.attention_global != 0, "attention_global", "0");
  refuse(c.attention_prefix != 0, "attention_prefix", "0");
  refuse(c.attention_stride != 0, "attention_stride", "0");
  refuse(!c.mixer_pattern.empty(), "mixer_pattern", "[]");
  check(c.position == Position::rope || c.position == Position::none ||
            c.position == Position::learned || c.position == Position::sinusoidal,
        where, ": attention = shared has position = none, learned, sinusoidal or rope; got ",
        enum_names(c.position)[static_cast<size_t>(c.position)]);
}

}  // namespace

void check_shared(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  check(c.layer_input_dim == 0 || c.embedding_dim == 0, where, ": ", spelling("layer_input_dim"),
        " = ", c.layer_input_dim,
        " needs an embedding as wide as the stream; set embedding_dim to 0");
  if (is_shared(c)) {
    check_unused_by_shared(c, where);
    check(c.global_kv_heads == 0 || c.heads % c.global_kv_heads == 0, where, ": ",
          spelling("heads"), " = ", c.heads, " must be a multiple of ", spelling("global_kv_heads"),
          " = ", c.global_kv_heads);
    check(c.shared_kv_d_ff == 0 || (c.shared_kv_layers > 0 && c.experts == 0), where, ": ",
          spelling("shared_kv_d_ff"), " = ", c.shared_kv_d_ff,
          " needs shared_kv_layers, whose feed-forward layers are dense");
    check_makers(c, where, spelling);
    check_tables(c, where, spelling);
    return;
  }
  const std::pair<const char*, bool> fields[] = {
      {"global_head_dim", c.global_head_dim != 0},   {"global_kv_heads", c.global_kv_heads != 0},
      {"shared_kv_layers", c.shared_kv_layers != 0}, {"shared_kv_d_ff", c.shared_kv_d_ff != 0},
      {"keys_as_values", c.keys_as_values},          {"value_norm", c.value_norm}};
  for (const auto& [field, given] : fields)
    check(!given, where, ": ", spelling(field),
          " needs attention = shared; leave it out, or choose that");
}

std::optional<nn::SharedAttentionOptions> shared_options(const ModelConfig& c) {
  if (!is_shared(c)) return {};
  nn::SharedAttentionOptions o;
  o.d_model = c.d_model, o.heads = c.heads, o.kv_heads = c.kv_heads, o.head_dim = c.head_dim;
  o.keys_as_values = c.keys_as_values, o.value_norm = c.value_norm;
  o.qk_norm = c.qk_norm == QKNorm::head;
  o.norm.eps = c.norm_eps, o.norm.gain = static_cast<nn::NormGain>(c.norm_gain);
  o.dropout = c.attention_dropout;
  o.rope_pairs = c.rope_layout == RopeLayout::half ? ops::RotaryPairs::half_split
                                                   : ops::RotaryPairs::interleaved;
  return o;
}

LayerShape layer_shape(const ModelConfig& c, int64_t layer) {
  LayerShape h{c.head_dim, c.kv_heads};
  h.d_ff = c.d_ff;
  if (!is_shared(c)) return h;
  h.takes = layer >= c.layers - c.shared_kv_layers;
  if (h.takes && c.shared_kv_d_ff > 0) h.d_ff = c.shared_kv_d_ff;
  if (has_window(c, layer)) return h;
  h.keys_as_values = c.keys_as_values;
  if (c.global_head_dim > 0) h.head_dim = c.global_head_dim;
  if (c.global_kv_heads > 0) h.kv_heads = c.global_kv_heads;
  return h;
}

SharedCounts shared_counts(const ModelConfig& c) {
  SharedCounts n;
  if (!is_shared(c)) return n;
  for (int64_t i = 0; i < c.layers; ++i) {
    const LayerShape h = layer_shape(c, i);
    const int64_t products = h.takes ? 0 : h.keys_as_values ? 1 : 2;
    n.matrices += (2 * c.heads + products * h.kv_heads) * h.head_dim * c.d_model;
    if (c.qk_norm == QKNorm::head && c.norm_gain != NormGain::none)
      n.norms += (h.takes ? 1 : 2) * h.head_dim;
  }
  return n;
}

LayerInputCounts layer_input_counts(const ModelConfig& c) {
  LayerInputCounts n;
  const int64_t width = c.layers * c.layer_input_dim;
  if (width == 0) return n;
  n.table = c.vocab * width;
  n.matrices = 3 * width * c.d_model;
  const bool one = c.norm == Norm::scale_norm;
  const int64_t rows = c.norm_gain == NormGain::none ? 0 : c.norm_bias ? 2 : 1;
  n.norms = one ? c.layers + 1 : rows * (c.layers * c.d_model + c.layer_input_dim);
  return n;
}

}  // namespace tally
