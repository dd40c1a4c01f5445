// Families whose layers are recurrent but for some of attention: Qwen3.5, Qwen3-Next and Jamba.
#include <algorithm>

#include "core/error.h"
#include "models/config_mixers.h"
#include "models/fields_json.h"
#include "models/hf_common.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"
#include "models/parameters.h"

namespace tally {
namespace {

using detail::shown;

/// What only attention has a use for, and a file says whether a layer has it or not.
void leave_out_attention(ModelConfig& m) {
  const ModelConfig plain;
  m.kv_heads = m.heads, m.qk_norm = QKNorm::none, m.attention_gate = false;
  m.position = Position::none, m.rope_base = plain.rope_base;
  m.rope_fraction = plain.rope_fraction;
}

/// layer_types, or, where that is not said, attention in every full_attention_interval-th layer.
void read_delta_layers(HfReader& r, ModelConfig& m) {
  const int64_t interval = r.integer("full_attention_interval", 4);
  check(interval > 0, r.where("full_attention_interval"), " must be above 0");
  const Json* types = r.find("layer_types");
  check(!types || (types->is_array() && static_cast<int64_t>(types->size()) == m.layers),
        r.where("layer_types"), " must name the kind of each of the ", m.layers, " layers");
  std::vector<std::string> mixers;
  for (int64_t i = 0; i < m.layers; ++i) {
    bool attends = (i + 1) % interval == 0;
    if (types) {
      const Json& type = (*types)[static_cast<size_t>(i)];
      attends = type == "full_attention";
      check(attends || type == "linear_attention", r.where("layer_types"), ": ", shown(type),
            " is not supported; full_attention and linear_attention are");
    }
    mixers.emplace_back(attends ? "attention" : "delta");
  }
  if (std::ranges::find(mixers, "delta") == mixers.end()) {
    m.delta_key_heads = m.delta_value_heads = m.delta_key_dim = m.delta_value_dim = 0;
    m.conv_width = 0;
    return;
  }
  m.mixer_pattern = shortest_period(mixers);
  if (!names_attention(m)) leave_out_attention(m);
}

void write_delta_layers(HfWriter& w, const ModelConfig& m) {
  w.rope("partial_rotary_factor");
  Json types = Json::array();
  for (int64_t i = 0; i < m.layers; ++i)
    types.push_back(mixer_of(m, i) == nn::Mixer::attention ? "full_attention" : "linear_attention");
  w["layer_types"] = types;
}

/// Norms multiply by 1 + w, but the one behind a delta rule; queries and keys have theirs;
/// attention's output has a gate, whose rows stand behind the queries' of its head.
void qwen_defaults(ModelConfig& m) {
  m.norm_eps = 1e-6, m.norm_gain = NormGain::one_plus_gamma;
  m.context = 32768, m.head_dim = 256;
  m.qk_norm = QKNorm::head, m.attention_gate = true;
  m.delta_key_heads = 16, m.delta_value_heads = 32;
  m.delta_key_dim = m.delta_value_dim = 128, m.conv_width = 4;
}

HfFamily qwen3_5() {
  HfFamily f = like_llama("qwen3_5_text", qwen_defaults, [](HfReader& r, ModelConfig& m) {
    // How a head is shared among the axes of an image, of which a text has one.
    r.pass_over_in_rope("mrope_section"), r.pass_over_in_rope("mrope_interleaved");
    r.only("attn_output_gate", true), r.only("mamba_ssm_dtype", "float32");
    r.read_rope("partial_rotary_factor", 0.25);
    read_delta_layers(r, m);
  });
  f.entries = common_entries("rms_norm_eps");
  add_entries(f, {{"head_dim", "head_dim"},
                  {"linear_num_key_heads", "delta_key_heads"},
                  {"linear_num_value_heads", "delta_value_heads"},
                  {"linear_key_head_dim", "delta_key_dim"},
                  {"linear_value_head_dim", "delta_value_dim"},
                  {"linear_conv_kernel_dim", "conv_width"}});
  f.fixed = {{"attention_bias", "false"}};
  f.write = write_delta_layers;
  row_of(f, "attention.q").order = HfOrder::heads;
  f.rows.push_back({"attention.gate", "self_attn.q_proj", false, HfOrder::heads});
  add_qk_norm(f);
  f.around = "qwen3_5", f.inside = "model.language_model.";
  // Layers that guess further tokens, and those that see images, are no part of the model here.
  f.buffers.insert(f.buffers.end(), {"mtp.", "model.visual."});
  f.rows.insert(f.rows.end(),
                {{"delta_net.q", "linear_attn.in_proj_qkv"},
                 {"delta_net.k", "linear_attn.in_proj_qkv"},
                 {"delta_net.v", "linear_attn.in_proj_qkv"},
                 {"delta_net.z", "linear_attn.in_proj_z"},
                 {"delta_net.beta", "linear_attn.in_proj_b"},
                 {"delta_net.decay", "linear_attn.in_proj_a"},
                 {.piece = "delta_net.conv", .stored = "linear_attn.conv1d", .convolution = true},
                 {"delta_net.decay_log", "linear_attn.A_log"},
                 {"delta_net.decay_bias", "linear_attn.dt_bias"},
                 {"delta_net.norm", "linear_attn.norm"},
                 {"delta_net.out", "linear_attn.out_proj"}});
  return f;
}

void read_next_experts(HfReader& r, ModelConfig& m) {
  const int64_t experts = r.integer("num_experts", 512),
                chosen = r.integer("num_experts_per_tok", 10),
                width = r.integer("moe_intermediate_size", 512),
                shared = r.integer("shared_expert_intermediate_size", 512),
                step = r.integer("decoder_sparse_step", 1);
  const bool renormalise = r.flag("norm_topk_prob", true);
  check(step > 0, r.where("decoder_sparse_step"), " must be above 0");
  if (experts == 0 || step > m.layers) return;
  m.experts = experts, m.experts_per_token = chosen, m.expert_d_ff = width;
  m.first_expert_layer = step - 1, m.expert_layer_every = step;
  m.router_renormalise = renormalise;
  if (shared > 0) m.shared_experts = 1, m.shared_expert_gate = true, m.shared_expert_d_ff = shared;
}

void write_next_experts(HfWriter& w, const ModelConfig& m) {
  w["num_experts"] = m.experts;
  if (m.experts == 0) return;
  w["num_experts_per_tok"] = m.experts_per_token, w["moe_intermediate_size"] = m.expert_d_ff;
  w["shared_expert_intermediate_size"] = shared_expert_width(m);
  w["decoder_sparse_step"] = m.expert_layer_every, w["norm_topk_prob"] = m.router_renormalise;
}

/// As Qwen3.5, with experts, and the products of a delta net by key head in two tensors.
HfFamily qwen3_next() {
  HfFamily f = qwen3_5();
  f.model_type = "qwen3_next", f.around = "";
  f.fixed = {{"attention_bias", "false"}, {"mlp_only_layers", "[]"}};
  f.read = [](HfReader& r, ModelConfig& m) {
    r.read_rope("partial_rotary_factor", 0.25);
    read_delta_layers(r, m);
    read_next_experts(r, m);
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    write_delta_layers(w, m);
    write_next_experts(w, m);
  };
  for (const char* piece : {"delta_net.q", "delta_net.k", "delta_net.v", "delta_net.z"})
    row_of(f, piece).stored = "linear_attn.in_proj_qkvz";
  for (const char* piece : {"delta_net.beta", "delta_net.decay"})
    row_of(f, piece).stored = "linear_attn.in_proj_ba";
  for (const char* piece : {"delta_net.q", "delta_net.k", "delta_net.v", "delta_net.z",
                            "delta_net.beta", "delta_net.decay"})
    row_of(f, piece).order = HfOrder::key_heads;
  f.rows.insert(f.rows.end(), {{"mlp.router", "mlp.gate"},
                               {"mlp.experts.gate", "mlp.experts.{}.gate_proj"},
                               {"mlp.experts.up", "mlp.experts.{}.up_proj"},
                               {"mlp.experts.down", "mlp.experts.{}.down_proj"},
                               {"mlp.shared.gate", "mlp.shared_expert.gate_proj"},
                               {"mlp.shared.up", "mlp.shared_expert.up_proj"},
                               {"mlp.shared.down", "mlp.shared_expert.down_proj"},
                               {"mlp.shared_gate", "mlp.shared_expert_gate"}});
  return f;
}

/// A kind of layer in every `period`-th one, the first at `offset`.
struct Turn {
  int64_t period, offset;
};
Turn read_turn(HfReader& r, const char* period_key, const char* offset_key, Turn otherwise) {
  const Turn t{r.integer(period_key, otherwise.period), r.integer(offset_key, otherwise.offset)};
  check(t.period > 0 && t.offset >= 0 && t.offset < t.period, r.where(offset_key), " = ", t.offset,
        " must lie between 0 and ", period_key, " - 1 = ", t.period - 1);
  return t;
}

void read_jamba(HfReader& r, ModelConfig& m) {
  const Turn attention = read_turn(r, "attn_layer_period", "attn_layer_offset", {8, 4}),
             experts = read_turn(r, "expert_layer_period", "expert_layer_offset", {2, 1});
  std::vector<std::string> mixers;
  for (int64_t i = 0; i < m.layers; ++i)
    mixers.emplace_back(i % attention.period == attention.offset ? "attention" : "mamba");
  m.mixer_pattern = shortest_period(mixers);
  if (!names_attention(m)) leave_out_attention(m);
  m.mamba_inner = m.d_model * r.integer("mamba_expand", 2);
  const Json* rank = r.find("mamba_dt_rank");
  m.mamba_dt_rank = rank && *rank == "auto" ? (m.d_model + 15) / 16 : r.integer("mamba_dt_rank", 0);
  const int64_t count = r.integer("num_experts", 16), chosen = r.integer("num_experts_per_tok", 2);
  for (const char* how :
       {"use_mamba_kernels", "use_associative_scan", "use_mambapy", "num_logits_to_keep"})
    r.find(how);
  if (count <= 1 || experts.offset >= m.layers) return;
  m.experts = count, m.experts_per_token = chosen, m.router_renormalise = false;
  m.first_expert_layer = experts.offset, m.expert_layer_every = experts.period;
}

void write_jamba(HfWriter& w, const ModelConfig& m) {
  std::vector<int64_t> attends;
  for (int64_t i = 0; i < m.layers; ++i) {
    if (mixer_of(m, i) == nn::Mixer::attention) attends.push_back(i);
  }
  // One layer of attention has the turn of the whole model; none, one that never comes.
  const int64_t offset = attends.empty() ? m.layers : attends[0];
  w["attn_layer_offset"] = offset;
  w["attn_layer_period"] =
      attends.size() > 1 ? attends[1] - attends[0] : std::max(m.layers, offset + 1);
  w["mamba_dt_rank"] = m.mamba_dt_rank;
  w["mamba_expand"] = m.mamba_inner / m.d_model;
  w["num_experts"] = m.experts > 0 ? m.experts : 1;
  w["expert_layer_offset"] = m.experts > 0 ? m.first_expert_layer : 0;
  w["expert_layer_period"] = m.experts > 0 ? m.expert_layer_every : 1;
  if (m.experts > 0) w["num_experts_per_tok"] = m.experts_per_token;
}

/// No positions: the layers between those of attention tell the order of tokens.
HfFamily jamba() {
  HfFamily f = like_llama(
      "jamba",
      [](ModelConfig& m) {
        m.norm_eps = 1e-6, m.context = 262144, m.kv_heads = 8, m.position = Position::none;
        m.mamba_state = 16, m.conv_width = 4, m.mamba_norms = true;
      },
      read_jamba);
  f.entries = common_entries("rms_norm_eps");
  add_entries(f, {{"mamba_d_state", "mamba_state"},
                  {"mamba_d_conv", "conv_width"},
                  {"mamba_conv_bias", "mamba_conv_bias"}});
  f.fixed = {{"mamba_proj_bias", "false"}, {"sliding_window", "null"}};
  f.write = write_jamba;
  row_of(f, "mlp_norm").stored = "pre_ff_layernorm";
  row_of(f, "final_norm").stored = "final_layernorm";
  for (const auto& [piece, stored] : {std::pair{"mlp.gate", "feed_forward.gate_proj"},
                                      std::pair{"mlp.up", "feed_forward.up_proj"},
                                      std::pair{"mlp.down", "feed_forward.down_proj"}})
    row_of(f, piece).stored = stored;
  f.rows.insert(f.rows.end(),
                {{"mlp.router", "feed_forward.router"},
                 {"mlp.experts.gate", "feed_forward.experts.{}.gate_proj"},
                 {"mlp.experts.up", "feed_forward.experts.{}.up_proj"},
                 {"mlp.experts.down", "feed_forward.experts.{}.down_proj"},
                 {"mamba.in", "mamba.in_proj"},
                 {.piece = "mamba.conv", .stored = "mamba.conv1d", .convolution = true},
                 {"mamba.parameters", "mamba.x_proj"},
                 {"mamba.dt_norm", "mamba.dt_layernorm"},
                 {"mamba.b_norm", "mamba.b_layernorm"},
                 {"mamba.c_norm", "mamba.c_layernorm"},
                 {"mamba.dt", "mamba.dt_proj"},
                 {"mamba.decay_log", "mamba.A_log"},
                 {"mamba.skip", "mamba.D"},
                 {"mamba.out", "mamba.out_proj"}});
  return f;
}

}  // namespace

std::vector<HfFamily> hybrid_families() { return {qwen3_5(), qwen3_next(), jamba()}; }

}  // namespace tally
