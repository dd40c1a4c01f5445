// Architectures without a published family of their own, as small modules written for a recorded
// case name their weights: LLaMA's names without "model.", "self_attn." and "mlp.".
#include <algorithm>
#include <cmath>

#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

HfFamily plain(const char* model_type, const char* eps) {
  HfFamily f{};
  f.model_type = model_type;
  f.entries = {{"num_hidden_layers", "layers", true},
               {"hidden_size", "d_model", true},
               {"num_attention_heads", "heads", true},
               {"num_key_value_heads", "kv_heads"},
               {"head_dim", "head_dim"},
               {"intermediate_size", "d_ff", true},
               {"vocab_size", "vocab", true},
               {eps, "norm_eps", true},
               {"tie_word_embeddings", "tied_head", true}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) { m.context = 2048; };
  f.prefix = "", f.blocks = "layers.";
  f.rows = {{"embedding", "embed_tokens"},
            {"attention_norm", "input_layernorm"},
            {"attention.q", "q_proj"},
            {"attention.k", "k_proj"},
            {"attention.v", "v_proj"},
            {"attention.out", "o_proj"},
            {"mlp_norm", "post_attention_layernorm"},
            {"mlp.gate", "gate_proj"},
            {"mlp.up", "up_proj"},
            {"mlp.down", "down_proj"},
            {"final_norm", "norm"},
            {"head", "lm_head"}};
  return f;
}

HfFamily palm() {
  HfFamily f = plain("palm_ref", "layer_norm_eps");
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.parallel = Parallel::shared_norm, m.context = 2048;
    m.kv_heads = 1;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    if (r.flag("rope_interleaved", true)) m.rope_layout = RopeLayout::interleaved;
    m.logit_scale = 1 / std::sqrt(double(m.d_model));
    r.read_rope();
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["rope_interleaved"] = m.rope_layout == RopeLayout::interleaved;
    w.rope();
  };
  return f;
}

HfFamily dclm() {
  HfFamily f = plain("dclm_ref", "layer_norm_eps");
  f.entries.push_back({"z_loss_coef", "z_loss"});
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.qk_norm = QKNorm::full, m.context = 2048;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope(); };
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(); };
  f.rows.push_back({"attention.q_norm", "q_norm"});
  f.rows.push_back({"attention.k_norm", "k_norm"});
  return f;
}

HfFamily baichuan2() {
  HfFamily f = plain("baichuan2_ref", "rms_norm_eps");
  f.entries.push_back({"z_loss_coef", "z_loss"});
  f.defaults = [](ModelConfig& m) { m.context = 2048, m.fix_norm = FixNorm::head; };
  f.read = [](HfReader& r, ModelConfig& m) {
    const Json* position = r.find("position");
    if (position && *position == "alibi")
      m.position = Position::alibi;
    else
      r.only("position", "rope");
    r.read_rope();
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["position"] = m.position == Position::alibi ? "alibi" : "rope";
    w.rope();
  };
  for (HfRow& row : f.rows) {
    if (row.piece == "attention.q" || row.piece == "attention.k" || row.piece == "attention.v")
      row.stored = "W_pack";
  }
  return f;
}

HfFamily gopher() {
  HfFamily f = plain("gopher_ref", "rms_norm_eps");
  f.defaults = [](ModelConfig& m) {
    m.context = 2048, m.position = Position::xl_relative;
    m.gated = false, m.activation = Activation::relu;
    m.sinusoid_layout = SinusoidLayout::halves;
  };
  for (HfRow& row : f.rows) {
    if (row.piece == "mlp.up") row.stored = "fc_in";
    if (row.piece == "mlp.down") row.stored = "fc_out";
  }
  f.rows.push_back({.piece = "attention.content_bias", .stored = "content_bias", .by_head = true});
  f.rows.push_back(
      {.piece = "attention.position_bias", .stored = "position_bias", .by_head = true});
  f.rows.push_back({"attention.relative", "r_proj"});
  return f;
}

HfFamily lamda() {
  HfFamily f = plain("lamda_ref", "rms_norm_eps");
  f.entries.push_back({"num_buckets", "t5_buckets"});
  f.entries.push_back({"max_distance", "t5_max_distance"});
  f.defaults = [](ModelConfig& m) {
    m.context = 2048, m.position = Position::t5_bias, m.activation = Activation::gelu_tanh;
  };
  f.rows.push_back({"position", "relative_attention_bias"});
  return f;
}

HfFamily grok1() {
  HfFamily f = plain("grok1_ref", "rms_norm_eps");
  f.entries.insert(f.entries.end(), {{"num_experts", "experts", true},
                                     {"num_experts_per_tok", "experts_per_token", true},
                                     {"embedding_multiplier", "embedding_scale", true},
                                     {"output_multiplier", "logit_scale", true},
                                     {"attn_output_multiplier", "attention_scale", true},
                                     {"attn_logit_softcapping", "attention_soft_cap", true}});
  f.defaults = [](ModelConfig& m) {
    m.context = 2048, m.placement = Placement::double_norm;
    m.activation = Activation::gelu_tanh, m.router_renormalise = false;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope(); };
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(); };
  for (HfRow& row : f.rows) {
    if (row.piece == "attention_norm") row.stored = "pre_attn_norm";
    if (row.piece == "mlp_norm") row.stored = "pre_ffn_norm";
  }
  f.rows.insert(f.rows.end(), {{"attention_output_norm", "post_attn_norm"},
                               {"mlp_output_norm", "post_ffn_norm"},
                               {"mlp.router", "router"},
                               {"mlp.experts.gate", "experts.{}.gate_proj"},
                               {"mlp.experts.up", "experts.{}.up_proj"},
                               {"mlp.experts.down", "experts.{}.down_proj"}});
  return f;
}

}  // namespace

std::vector<HfFamily> reference_families() {
  return {palm(), dclm(), baichuan2(), gopher(), lamda(), grok1()};
}

}  // namespace tally
