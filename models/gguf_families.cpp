// The architectures of GGUF files that are read: entries of metadata and names of tensors.
#include <cmath>

#include "core/error.h"
#include "models/gguf_config.h"
#include "models/hf_reader.h"
#include "models/hf_rope.h"

namespace tally {
namespace {

std::vector<HfEntry> gguf_entries(const char* eps) {
  return {{"block_count", "layers", true},
          {"embedding_length", "d_model", true},
          {"attention.head_count", "heads", true},
          {"attention.head_count_kv", "kv_heads"},
          {"attention.key_length", "head_dim"},
          {"feed_forward_length", "d_ff", true},
          {"context_length", "context", true},
          {"vocab_size", "vocab"},
          {"tied", "tied_head"},
          {eps, "norm_eps", true}};
}

/// rope.scaling.* in the spelling of config.json.
void read_gguf_scaling(HfReader& r, ModelConfig& m) {
  const Json* type = r.find("rope.scaling.type");
  Json rope = {{"type", type ? *type : Json("linear")}};
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"rope.scaling.factor", "factor"},
      {"rope.scaling.original_context_length", "original_max_position_embeddings"},
      {"rope.scaling.attn_factor", "attention_factor"}};
  for (const auto& [key, entry] : kKeys) {
    if (const Json* value = r.find(key)) rope[entry] = *value;
  }
  r.find("rope.scaling.finetuned");
  if (rope["type"] == "none" || (!type && !rope.contains("factor"))) return;
  if (rope["type"] == "linear") rope.erase("original_max_position_embeddings");
  read_hf_rope(rope, r.where("rope.scaling"), m);
}

/// rope_freqs.weight: what each frequency is divided by (LLaMA 3.1's scaling, worked out).
void read_gguf_factors(HfReader& r, ModelConfig& m) {
  const Json* factors = r.find("rope_freqs");
  if (!factors) return;
  check(m.rope_scaling == RopeScale::none, r.where("rope.scaling"),
        " and the tensor rope_freqs.weight both scale the frequencies; one of them may");
  m.rope_scaling = RopeScale::longrope;
  m.rope_short_factors = m.rope_long_factors = factors->get<std::vector<double>>();
  m.rope_original_context = m.context;
  m.rope_attention_factor = 1;
}

void read_gguf_rope(HfReader& r, ModelConfig& m) {
  m.rope_base = r.number("rope.freq_base", 10000);
  const int64_t width = m.head_dim > 0 ? m.head_dim : m.d_model / std::max<int64_t>(1, m.heads);
  r.only("rope.dimension_count", width);
  r.only("attention.value_length", width);
  read_gguf_scaling(r, m);
  read_gguf_factors(r, m);
}

HfFamily gguf_dense() {
  HfFamily f{};
  f.model_type = "llama";
  f.entries = gguf_entries("attention.layer_norm_rms_epsilon");
  for (const HfEntry& bias : std::vector<HfEntry>{{"attn_q.bias", "qkv_bias"},
                                                  {"attn_output.bias", "attention_output_bias"},
                                                  {"ffn_up.bias", "mlp_bias"}})
    f.entries.push_back(bias);
  f.fixed = {{"expert_count", "0"}, {"expert_used_count", "0"}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig&) {};
  f.read = [](HfReader& r, ModelConfig& m) {
    read_gguf_rope(r, m);
    r.find("tensor_data_layout");  // a word of the converter
  };
  f.prefix = "", f.blocks = "blk.";
  f.rows = {{"embedding", "token_embd"},
            {"attention_norm", "attn_norm"},
            {"attention.q", "attn_q", false, HfOrder::paired},
            {"attention.k", "attn_k", false, HfOrder::paired},
            {"attention.v", "attn_v"},
            {"attention.out", "attn_output"},
            {"mlp_norm", "ffn_norm"},
            {"mlp.gate", "ffn_gate"},
            {"mlp.up", "ffn_up"},
            {"mlp.down", "ffn_down"},
            {"final_norm", "output_norm"},
            {"head", "output"}};
  f.buffers = {"rope_freqs.weight"};
  return f;
}

/// Mixtures: the matrices of all experts of a layer in one tensor. Their weights add up to 1.
void read_gguf_experts(HfReader& r, ModelConfig& m) {
  m.experts = r.integer("expert_count", 0);
  const int64_t chosen = r.integer("expert_used_count", 0);
  const int64_t width = r.integer("expert_feed_forward_length", 0);
  if (m.experts > 0) m.experts_per_token = chosen, m.expert_d_ff = width;
}
void add_gguf_experts(HfFamily& f) {
  f.fixed.clear();
  f.rows.insert(f.rows.end(), {{"mlp.router", "ffn_gate_inp"},
                               {"mlp.experts.gate", "ffn_gate_exps"},
                               {"mlp.experts.up", "ffn_up_exps"},
                               {"mlp.experts.down", "ffn_down_exps"}});
  f.read = [](HfReader& r, ModelConfig& m) {
    read_gguf_rope(r, m);
    read_gguf_experts(r, m);
    r.find("tensor_data_layout");  // a word of the converter
  };
}

/// LLaMA, Mistral, Mixtral.
HfFamily gguf_llama() {
  HfFamily f = gguf_dense();
  add_gguf_experts(f);
  return f;
}

/// Rotation by halves, as published: q and k lie as they do there.
HfFamily gguf_halves(const char* architecture) {
  HfFamily f = gguf_dense();
  f.model_type = architecture;
  for (HfRow& row : f.rows) row.order = HfOrder::pieces;
  return f;
}

HfFamily gguf_qwen3() {
  HfFamily f = gguf_halves("qwen3");
  f.defaults = [](ModelConfig& m) { m.qk_norm = QKNorm::head; };
  f.rows.push_back({"attention.q_norm", "attn_q_norm"});
  f.rows.push_back({"attention.k_norm", "attn_k_norm"});
  return f;
}

HfFamily gguf_qwen3moe() {
  HfFamily f = gguf_qwen3();
  f.model_type = "qwen3moe";
  add_gguf_experts(f);
  return f;
}

/// Gains are stored with the 1 that Gemma adds to them.
HfFamily gguf_gemma() {
  HfFamily f = gguf_halves("gemma");
  f.defaults = [](ModelConfig& m) { m.activation = Activation::gelu_tanh; };
  f.read = [](HfReader& r, ModelConfig& m) {
    m.embedding_scale = std::sqrt(double(m.d_model));
    read_gguf_rope(r, m);
  };
  return f;
}

HfFamily gguf_gemma2() {
  HfFamily f = gguf_gemma();
  f.model_type = "gemma2";
  f.entries.push_back({"attn_logit_softcapping", "attention_soft_cap"});
  f.entries.push_back({"final_logit_softcapping", "final_soft_cap"});
  f.defaults = [](ModelConfig& m) {
    m.activation = Activation::gelu_tanh, m.placement = Placement::double_norm;
    m.attention_soft_cap = 50, m.final_soft_cap = 30;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    m.embedding_scale = std::sqrt(double(m.d_model));
    read_gguf_rope(r, m);
    m.window = r.integer("attention.sliding_window", 4096);
    m.attention_pattern = {"window", "full"};
    // The scale of scores is not stored: the 27B model alone, of 46 layers, has one of its own.
    if (m.layers == 46) m.attention_scale = 1 / std::sqrt(double(m.d_model) / double(m.heads));
  };
  f.rows.push_back({"attention_output_norm", "post_attention_norm"});
  f.rows.push_back({"mlp_output_norm", "post_ffw_norm"});
  return f;
}

HfFamily gguf_gpt2() {
  HfFamily f{};
  f.model_type = "gpt2";
  f.entries = gguf_entries("attention.layer_norm_epsilon");
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_bias = true, m.gated = false;
    m.activation = Activation::gelu_tanh, m.position = Position::learned, m.init = Init::gpt2;
    m.qkv_bias = m.attention_output_bias = m.mlp_bias = true;
  };
  f.read = [](HfReader& r, ModelConfig&) {
    for (const char* known : {"attn_q.bias", "attn_output.bias", "ffn_up.bias"}) r.find(known);
  };
  f.prefix = "", f.blocks = "blk.";
  f.rows = {{"embedding", "token_embd"},
            {"position", "position_embd"},
            {"attention_norm", "attn_norm"},
            {"attention.q", "attn_qkv"},
            {"attention.k", "attn_qkv"},
            {"attention.v", "attn_qkv"},
            {"attention.out", "attn_output"},
            {"mlp_norm", "ffn_norm"},
            {"mlp.up", "ffn_up"},
            {"mlp.down", "ffn_down"},
            {"final_norm", "output_norm"},
            {"head", "output"}};
  return f;
}

}  // namespace

const std::vector<HfFamily>& gguf_families() {
  static const std::vector<HfFamily> list = {gguf_llama(),        gguf_gemma(), gguf_gemma2(),
                                             gguf_gpt2(),         gguf_qwen3(), gguf_qwen3moe(),
                                             gguf_halves("qwen2")};
  return list;
}

}  // namespace tally
