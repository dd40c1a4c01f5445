// Gemma and the other families that take much from LLaMA and change its block.
#include "models/hf_common.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/fields_json.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

/// All layers but every n-th slide; kOtherwise: n where config.json is silent.
template <int64_t kOtherwise>
bool slides_by_pattern(HfReader& r, int64_t layer) {
  return (layer + 1) % std::max<int64_t>(1, r.integer("sliding_window_pattern", kOtherwise)) != 0;
}

void gemma_defaults(ModelConfig& m) {
  m.norm_eps = 1e-6, m.context = 8192, m.head_dim = 256, m.tied_head = true;
  m.norm_gain = NormGain::one_plus_gamma;
}

HfFamily gemma() {
  HfFamily f = like_llama("gemma", gemma_defaults, [](HfReader& r, ModelConfig& m) {
    r.find("hidden_act");  // "gelu" of the first releases means the tanh form too
    m.embedding_scale = std::sqrt(double(m.d_model));
    r.read_rope();
  });
  f.activation_key = "hidden_activation", f.activation = "gelu_pytorch_tanh";
  return f;
}

/// What Gemma 2 and 3 share: norms on both sides and a scale of the scores of their own.
void read_gemma_scores(HfReader& r, ModelConfig& m) {
  r.find("hidden_act");
  m.embedding_scale = std::sqrt(double(m.d_model));
  const double scalar = r.number("query_pre_attn_scalar", 256);
  check(scalar > 0, r.where("query_pre_attn_scalar"), " must be above 0");
  m.attention_scale = 1 / std::sqrt(scalar);
}
void write_gemma_scores(HfWriter& w, const ModelConfig& m) {
  w["query_pre_attn_scalar"] = HfWriter::whole_or_real(1 / (m.attention_scale * m.attention_scale));
}

HfFamily gemma2() {
  HfFamily f = gemma();
  f.model_type = "gemma2";
  add_entries(f, {{"attn_logit_softcapping", "attention_soft_cap"},
                  {"final_logit_softcapping", "final_soft_cap"}});
  f.defaults = [](ModelConfig& m) {
    gemma_defaults(m);
    m.placement = Placement::double_norm, m.attention_soft_cap = 50, m.final_soft_cap = 30;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    read_gemma_scores(r, m);
    r.read_rope();
    r.read_windows([](HfReader&, int64_t i) { return i % 2 == 0; }, 4096);
  };
  row_of(f, "mlp_norm").stored = "pre_feedforward_layernorm";
  f.rows.push_back({"attention_output_norm", "post_attention_layernorm"});
  f.rows.push_back({"mlp_output_norm", "post_feedforward_layernorm"});
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w.rope(), w.windows();
    write_gemma_scores(w, m);
  };
  return f;
}

HfFamily gemma3() {
  HfFamily f = gemma2();
  f.model_type = "gemma3_text";
  f.defaults = [](ModelConfig& m) {
    gemma_defaults(m);
    m.context = 131072, m.rope_base = 1e6;
    m.placement = Placement::double_norm, m.qk_norm = QKNorm::head;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    read_gemma_scores(r, m);
    r.read_windows(slides_by_pattern<6>, 4096);
    r.find("sliding_window_pattern");
    m.rope_local_base = r.number("rope_local_base_freq", 10000);
    r.read_rope();
    turn_windows_locally(m);
  };
  add_qk_norm(f);
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w.rope_by_layer();
    write_gemma_scores(w, m);
  };
  return f;
}

/// Layers that slide but the last, which sees all whatever the pattern says.
bool slides_in_gemma4(HfReader& r, int64_t layer) {
  return (layer + 1) % 6 != 0 && layer + 1 < r.integer("num_hidden_layers", 30);
}

/// In every layer, beside the dense one.
void read_gemma4_experts(HfReader& r, ModelConfig& m) {
  const bool any = r.flag("enable_moe_block", false);
  const int64_t experts = r.integer("num_experts", 0), chosen = r.integer("top_k_experts", 0),
                width = r.integer("moe_intermediate_size", 0);
  if (!any) return;
  check(experts > 0 && chosen > 0 && width > 0, r.where("enable_moe_block"),
        " needs num_experts, top_k_experts and moe_intermediate_size above 0");
  m.experts = experts, m.experts_per_token = chosen, m.expert_d_ff = width;
  m.dense_branch = m.router_norm = m.router_expert_scale = true;
}
void write_gemma4_experts(HfWriter& w, const ModelConfig& m) {
  w["enable_moe_block"] = m.experts > 0;
  if (m.experts == 0) return;
  w["num_experts"] = m.experts, w["top_k_experts"] = m.experts_per_token;
  w["moe_intermediate_size"] = m.expert_d_ff;
}

/// transformers from 5.2x on writes what the layers without a window have of their own by layer, in
/// place of global_head_dim and num_global_key_value_heads.
void read_gemma4_layers(HfReader& r, ModelConfig& m) {
  const Json* layers = r.find("per_layer_config");
  if (!layers) return;
  const std::string at = r.where("per_layer_config");
  check(layers->is_object(), at, " must be an object of layers");
  const auto has_window = [&](int64_t i) {
    const auto& kinds = m.attention_pattern;
    return kinds.empty() ? m.window > 0 : kinds[static_cast<size_t>(i) % kinds.size()] == "window";
  };
  const Json* first = nullptr;
  size_t full = 0;
  for (int64_t i = 0; i < m.layers; ++i) {
    const auto layer = layers->find(std::to_string(i));
    const bool said = layer != layers->end();
    check(said != has_window(i), at, ": layer ", i,
          said ? " has a window, and heads of its own" : " has no window and is missing",
          "; only layers without a window may differ from the others, and all of them alike");
    if (!said) continue;
    ++full;
    if (first)
      check(*layer == *first, at, ": layer ", i, " is ", layer->dump(), ", another is ",
            first->dump(), "; layers without a window must be alike");
    first = &*layer;
  }
  check(full == layers->size(), at, " names a layer that is not among the ", m.layers);
  if (!first) return;
  check(first->is_object(), at, " must hold an object for each layer");
  for (const auto& [key, value] : first->items()) {
    check(key == "head_dim" || key == "num_key_value_heads", at, ": the entry \"", key,
          "\" of a layer is not supported");
    (key == "head_dim" ? m.global_head_dim : m.global_kv_heads) =
        detail::integer(value, at + ": " + key);
  }
}

void read_gemma4(HfReader& r, ModelConfig& m) {
  // Entries whose 0 means "none".
  m.shared_kv_layers = r.integer("num_kv_shared_layers", 0);
  m.layer_input_dim = r.integer("hidden_size_per_layer_input", 256);
  m.embedding_scale = std::sqrt(double(m.d_model));
  m.keys_as_values = r.flag("attention_k_eq_v", false);
  const int64_t kv_heads = r.integer("num_global_key_value_heads", 0);
  if (m.keys_as_values) m.global_kv_heads = kv_heads;
  if (r.flag("use_double_wide_mlp", false) && m.shared_kv_layers > 0) m.shared_kv_d_ff = 2 * m.d_ff;
  r.only("vocab_size_per_layer_input", m.vocab);
  read_gemma4_experts(r, m);
  r.read_windows(slides_in_gemma4, 512);
  read_gemma4_layers(r, m);
  m.rope_local_base = 10000;
  r.read_rope();
  turn_windows_locally(m);
}

HfFamily gemma4() {
  HfFamily f = gemma2();
  f.model_type = "gemma4_text";
  f.entries = common_entries("rms_norm_eps");
  add_entries(f, {{"head_dim", "head_dim"},
                  {"global_head_dim", "global_head_dim"},
                  {"final_logit_softcapping", "final_soft_cap"}});
  f.fixed = {{"attention_bias", "false"}};
  f.defaults = [](ModelConfig& m) {
    m.attention = AttentionKind::shared, m.value_norm = true, m.layer_scale = true;
    m.norm_eps = 1e-6, m.context = 131072, m.tied_head = true, m.attention_scale = 1;
    m.head_dim = 256, m.global_head_dim = 512;
    m.placement = Placement::double_norm, m.qk_norm = QKNorm::head;
    m.rope_base = 1e6, m.rope_scaling = RopeScale::proportional, m.rope_fraction = 0.25;
  };
  f.read = read_gemma4;
  add_qk_norm(f);
  f.rows.insert(f.rows.end(), {{"layer_input.gate", "per_layer_input_gate"},
                               {"layer_input.projection", "per_layer_projection"},
                               {"layer_input.norm", "post_per_layer_input_norm"},
                               {"layer_scale", "layer_scalar"},
                               {"layer_inputs.embedding", "embed_tokens_per_layer"},
                               {"layer_inputs.projection", "per_layer_model_projection"},
                               {"layer_inputs.norm", "per_layer_projection_norm"},
                               {"dense_output_norm", "post_feedforward_layernorm_1"},
                               {"experts_norm", "pre_feedforward_layernorm_2"},
                               {"experts_output_norm", "post_feedforward_layernorm_2"},
                               {"mlp.router", "router.proj"},
                               {"mlp.router.scale", "router.scale"},
                               {"mlp.router.expert_scale", "router.per_expert_scale"}});
  for (const auto& [piece, stored] : {std::pair{"mlp.experts.gate", "experts.gate_up_proj"},
                                      {"mlp.experts.up", "experts.gate_up_proj"},
                                      {"mlp.experts.down", "experts.down_proj"}})
    f.rows.push_back({.piece = piece, .stored = stored, .all_experts = true});
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w.rope_by_layer();
    w["attention_k_eq_v"] = m.keys_as_values;
    w["num_kv_shared_layers"] = m.shared_kv_layers;
    w["hidden_size_per_layer_input"] = m.layer_input_dim;
    if (m.global_kv_heads > 0) w["num_global_key_value_heads"] = m.global_kv_heads;
    w["use_double_wide_mlp"] = m.shared_kv_d_ff > 0;
    w["vocab_size_per_layer_input"] = m.vocab;
    write_gemma4_experts(w, m);
  };
  return f;
}

HfFamily cohere() {
  HfFamily f = llama_family();
  f.model_type = "cohere";
  f.entries = common_entries("layer_norm_eps");
  add_entries(f, {{"attention_bias", "qkv_bias"},
                  {"attention_bias", "attention_output_bias"},
                  {"logit_scale", "logit_scale"}});
  f.fixed.clear();
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_eps = 1e-5, m.context = 8192;
    m.parallel = Parallel::shared_norm, m.rope_layout = RopeLayout::interleaved;
    m.logit_scale = 0.0625, m.tied_head = true;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    if (r.flag("use_qk_norm", false)) m.qk_norm = QKNorm::heads;
    r.read_rope();
  };
  remove_row(f, "mlp_norm");
  add_qk_norm(f);
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["use_qk_norm"] = m.qk_norm == QKNorm::heads;
    w.rope();
  };
  return f;
}

HfFamily cohere2() {
  HfFamily f = cohere();
  f.model_type = "cohere2";
  add_entries(f, {{"head_dim", "head_dim"}});
  f.fixed.clear();
  f.read = [](HfReader& r, ModelConfig& m) {
    r.read_rope();
    r.read_windows(slides_by_pattern<4>, 4096);
    r.find("sliding_window_pattern");
    for (const std::string& kind : m.attention_pattern)
      m.position_pattern.emplace_back(kind == "window" ? "global" : "none");
  };
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(), w.windows(); };
  return f;
}

HfFamily nemotron() {
  HfFamily f = llama_family();
  f.model_type = "nemotron";
  f.entries = common_entries("norm_eps");
  add_entries(f, {{"head_dim", "head_dim"},
                  {"attention_bias", "qkv_bias"},
                  {"attention_bias", "attention_output_bias"},
                  {"mlp_bias", "mlp_bias"}});
  f.fixed.clear();
  f.activation = "relu2";
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5;
    m.norm_gain = NormGain::one_plus_gamma, m.gated = false, m.context = 4096;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope("partial_rotary_factor", 0.5); };
  remove_row(f, "mlp.gate");
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope("partial_rotary_factor"); };
  return f;
}

HfFamily stablelm() {
  HfFamily f = llama_family();
  f.model_type = "stablelm";
  f.entries = common_entries("layer_norm_eps");
  add_entries(f, {{"use_qkv_bias", "qkv_bias"}});
  f.fixed = {{"qk_layernorm", "false"}, {"use_parallel_residual", "false"}};
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5, m.context = 4096;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope("partial_rotary_factor", 0.25); };
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope("partial_rotary_factor"); };
  return f;
}

}  // namespace

std::vector<HfFamily> gemma_families() {
  return {gemma(), gemma2(), gemma3(), gemma4(), cohere(), cohere2(), nemotron(), stablelm()};
}

}  // namespace tally
