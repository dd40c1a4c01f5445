// Phi, StarCoder2, nanochat, and mixtures of experts with the names of LLaMA.
#include "models/hf_common.h"

#include "core/error.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

HfFamily phi() {
  HfFamily f = llama_family();
  f.model_type = "phi";
  f.entries = common_entries("layer_norm_eps");
  f.fixed = {{"qk_layernorm", "false"}};
  f.activation = "gelu_new";
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5;
    m.gated = false, m.context = 2048, m.parallel = Parallel::shared_norm;
    m.qkv_bias = m.attention_output_bias = m.mlp_bias = m.head_bias = true;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope("partial_rotary_factor", 0.5); };
  remove_row(f, "mlp.gate"), remove_row(f, "mlp_norm");
  row_of(f, "attention.out").stored = "self_attn.dense";
  row_of(f, "mlp.up").stored = "mlp.fc1", row_of(f, "mlp.down").stored = "mlp.fc2";
  row_of(f, "final_norm").stored = "final_layernorm";
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope("partial_rotary_factor"); };
  return f;
}

HfFamily phi3() {
  HfFamily f = like_llama(
      "phi3", [](ModelConfig& m) { m.norm_eps = 1e-5, m.context = 4096; },
      [](HfReader& r, ModelConfig& m) {
        // Where the scaling stands in an entry of its own, this one stands beside it.
        m.rope_original_context = r.integer("original_max_position_embeddings", 0);
        r.read_rope("partial_rotary_factor", 1);
        if (m.rope_scaling == RopeScale::none) m.rope_original_context = 0;
        r.read_windows(every_layer);
      });
  for (const char* piece : {"attention.q", "attention.k", "attention.v"})
    row_of(f, piece).stored = "self_attn.qkv_proj";
  for (const char* piece : {"mlp.gate", "mlp.up"}) row_of(f, piece).stored = "mlp.gate_up_proj";
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w.rope("partial_rotary_factor"), w.windows();
    if (m.rope_original_context > 0)
      w["original_max_position_embeddings"] = m.rope_original_context;
  };
  return f;
}

HfFamily starcoder2() {
  HfFamily f = llama_family();
  f.model_type = "starcoder2";
  f.entries = common_entries("norm_epsilon");
  add_entries(
      f,
      {{"use_bias", "qkv_bias"}, {"use_bias", "attention_output_bias"}, {"use_bias", "mlp_bias"}});
  f.fixed.clear();
  f.activation = "gelu_pytorch_tanh";
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5;
    m.gated = false, m.context = 4096, m.tied_head = true;
    m.qkv_bias = m.attention_output_bias = m.mlp_bias = true;
  };
  f.read = [](HfReader& r, ModelConfig&) {
    r.read_rope();
    r.read_windows(every_layer);
  };
  remove_row(f, "mlp.gate");
  row_of(f, "mlp.up").stored = "mlp.c_fc", row_of(f, "mlp.down").stored = "mlp.c_proj";
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(), w.windows(); };
  return f;
}

HfFamily nanochat() {
  HfFamily f = like_llama(
      "nanochat",
      [](ModelConfig& m) {
        m.norm_eps = 1e-6, m.norm_gain = NormGain::none, m.embedding_norm = true;
        m.gated = false, m.qk_norm = QKNorm::head, m.context = 2048;
      },
      [](HfReader& r, ModelConfig&) { r.read_rope(); });
  add_entries(f, {{"final_logit_softcapping", "final_soft_cap"}});
  f.activation = "relu2";
  remove_row(f, "mlp.gate");
  row_of(f, "mlp.up").stored = "mlp.fc1", row_of(f, "mlp.down").stored = "mlp.fc2";
  // Rotates the other way. A norm without weights is the same before and after a rotation.
  row_of(f, "attention.q").order = row_of(f, "attention.k").order = HfOrder::turned;
  return f;
}

HfFamily mixtral() {
  HfFamily f = llama_family();
  f.model_type = "mixtral", f.fixed.clear();
  add_entries(f, {{"num_local_experts", "experts"}, {"num_experts_per_tok", "experts_per_token"}});
  f.defaults = [](ModelConfig& m) {
    m.norm_eps = 1e-5, m.context = 131072, m.rope_base = 1e6, m.experts = 8;
  };
  f.read = [](HfReader& r, ModelConfig&) {
    r.read_rope();
    r.read_windows(every_layer);
  };
  f.rows.insert(f.rows.end(), {{"mlp.router", "block_sparse_moe.gate"},
                               {"mlp.experts.gate", "block_sparse_moe.experts.{}.w1"},
                               {"mlp.experts.up", "block_sparse_moe.experts.{}.w3"},
                               {"mlp.experts.down", "block_sparse_moe.experts.{}.w2"}});
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(), w.windows(); };
  return f;
}

HfFamily gpt_oss() {
  HfFamily f = like_llama(
      "gpt_oss",
      [](ModelConfig& m) {
        m.norm_eps = 1e-5, m.context = 131072, m.rope_base = 150000, m.head_dim = 64;
        m.experts = 128, m.experts_per_token = 4, m.router_bias = true;
        m.qkv_bias = m.attention_output_bias = m.mlp_bias = m.attention_sink = true;
        m.gate_limit = 7, m.gate_offset = 1, m.activation_parameter = 1.702;
      },
      [](HfReader& r, ModelConfig& m) {
        m.activation = Activation::swish;
        r.read_rope();
        r.read_windows([](HfReader&, int64_t i) { return i % 2 == 0; }, 128);
      });
  add_entries(f, {{"num_local_experts", "experts"},
                  {"num_experts_per_tok", "experts_per_token"},
                  {"swiglu_alpha", "activation_parameter"},
                  {"swiglu_limit", "gate_limit"}});
  f.rows.push_back({"attention.sink", "self_attn.sinks"});
  f.rows.push_back({"mlp.router", "mlp.router"});
  for (const char* piece : {"mlp.experts.gate", "mlp.experts.up"})
    f.rows.push_back({.piece = piece,
                      .stored = "mlp.experts.gate_up_proj",
                      .transposed = true,
                      .order = HfOrder::alternate,
                      .all_experts = true});
  f.rows.push_back({.piece = "mlp.experts.down",
                    .stored = "mlp.experts.down_proj",
                    .transposed = true,
                    .all_experts = true});
  f.write = [](HfWriter& w, const ModelConfig&) {
    w["hidden_act"] = "silu";
    w.rope(), w.windows();
  };
  return f;
}

}  // namespace

std::vector<HfFamily> phi_families() {
  return {phi(), phi3(), starcoder2(), nanochat(), mixtral(), gpt_oss()};
}

}  // namespace tally
