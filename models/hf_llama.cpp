// Families with the names of LLaMA: model.layers.N.self_attn.q_proj and their like.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/hf_reader.h"

namespace tally {
namespace {

std::vector<HfEntry> common_entries(const char* eps) {
  return {{"num_hidden_layers", "layers", true},  {"hidden_size", "d_model", true},
          {"num_attention_heads", "heads", true}, {"num_key_value_heads", "kv_heads"},
          {"intermediate_size", "d_ff", true},    {"vocab_size", "vocab", true},
          {"max_position_embeddings", "context"}, {eps, "norm_eps"},
          {"initializer_range", "init_std"},      {"tie_word_embeddings", "tied_head"}};
}

HfRow& row_of(HfFamily& f, std::string_view piece) {
  return *std::ranges::find_if(f.rows, [&](const HfRow& row) { return row.piece == piece; });
}
void remove_row(HfFamily& f, std::string_view piece) {
  std::erase_if(f.rows, [&](const HfRow& row) { return row.piece == piece; });
}
void add(HfFamily& f, std::initializer_list<HfEntry> entries) {
  f.entries.insert(f.entries.end(), entries);
}
void qk_norm_rows(HfFamily& f) {
  f.rows.push_back({"attention.q_norm", "self_attn.q_norm"});
  f.rows.push_back({"attention.k_norm", "self_attn.k_norm"});
}

HfFamily llama() {
  HfFamily f{};
  f.model_type = "llama";
  f.entries = common_entries("rms_norm_eps");
  add(f, {{"head_dim", "head_dim"},
          {"attention_bias", "qkv_bias"},
          {"attention_bias", "attention_output_bias"},
          {"mlp_bias", "mlp_bias"}});
  f.fixed = {{"partial_rotary_factor", "1.0"}, {"rope_interleaved", "false"}};
  f.activation_key = "hidden_act", f.activation = "silu";
  f.defaults = [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 2048; };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope(); };
  f.prefix = "model.", f.blocks = "layers.";
  f.rows = {{"embedding", "embed_tokens"},
            {"attention_norm", "input_layernorm"},
            {"attention.q", "self_attn.q_proj"},
            {"attention.k", "self_attn.k_proj"},
            {"attention.v", "self_attn.v_proj"},
            {"attention.out", "self_attn.o_proj"},
            {"mlp_norm", "post_attention_layernorm"},
            {"mlp.gate", "mlp.gate_proj"},
            {"mlp.up", "mlp.up_proj"},
            {"mlp.down", "mlp.down_proj"},
            {"final_norm", "norm"},
            {"head", "lm_head"}};
  f.buffers = {"rotary_emb.inv_freq"};
  return f;
}

/// A family whose config.json and names are LLaMA's but for what follows.
HfFamily like_llama(const char* model_type, void (*defaults)(ModelConfig&),
                    void (*read)(HfReader&, ModelConfig&)) {
  HfFamily f = llama();
  f.model_type = model_type, f.defaults = defaults, f.read = read;
  f.fixed.clear();
  return f;
}

HfFamily mistral() {
  return like_llama(
      "mistral", [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 131072; },
      [](HfReader& r, ModelConfig&) {
        r.read_rope();
        r.read_windows(every_layer, 4096);
      });
}

HfFamily granite() {
  HfFamily f = like_llama(
      "granite", [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 2048, m.attention_scale = 1; },
      [](HfReader& r, ModelConfig& m) {
        const double divisor = r.number("logits_scaling", 1);
        check(divisor != 0, r.where("logits_scaling"), " must not be 0");
        m.logit_scale = 1 / divisor;
        r.read_rope();
      });
  add(f, {{"embedding_multiplier", "embedding_scale"},
          {"residual_multiplier", "residual_scale"},
          {"attention_multiplier", "attention_scale"}});
  return f;
}

HfFamily smollm3() {
  return like_llama(
      "smollm3",
      [](ModelConfig& m) {
        m.norm_eps = 1e-6, m.context = 32768, m.rope_base = 2e6, m.tied_head = true;
      },
      [](HfReader& r, ModelConfig& m) {
        r.read_rope();
        if (r.flag("use_sliding_window", false)) r.read_windows(every_layer);
        r.find("sliding_window"), r.find("layer_types");  // nothing without the flag
        const int64_t interval = r.integer("no_rope_layer_interval", 4);
        const Json* list = r.find("no_rope_layers");
        check(!list || (list->is_array() && static_cast<int64_t>(list->size()) == m.layers),
              r.where("no_rope_layers"), " must hold a 1 or a 0 for each of the ", m.layers,
              " layers");
        for (int64_t i = 0; i < m.layers; ++i) {
          // 1: this layer does turn.
          const bool turns = list ? (*list)[static_cast<size_t>(i)] == 1 : (i + 1) % interval != 0;
          m.position_pattern.emplace_back(turns ? "global" : "none");
        }
      });
}

HfFamily qwen2() {
  HfFamily f = like_llama(
      "qwen2", [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 32768, m.qkv_bias = true; },
      [](HfReader& r, ModelConfig&) {
        r.read_rope();
        if (r.flag("use_sliding_window", false))
          r.read_windows([](HfReader& reader,
                            int64_t i) { return i >= reader.integer("max_window_layers", 28); },
                         4096);
        for (const char* unused : {"sliding_window", "max_window_layers", "layer_types"})
          r.find(unused);
      });
  std::erase_if(f.entries, [](const HfEntry& e) {
    return std::string_view(e.key) == "attention_bias" || std::string_view(e.key) == "mlp_bias";
  });
  return f;
}

HfFamily qwen3() {
  HfFamily f = qwen2();
  f.model_type = "qwen3";
  add(f, {{"attention_bias", "qkv_bias"}, {"attention_bias", "attention_output_bias"}});
  f.defaults = [](ModelConfig& m) {
    m.norm_eps = 1e-6, m.context = 32768, m.head_dim = 128, m.qk_norm = QKNorm::head;
  };
  qk_norm_rows(f);
  return f;
}

HfFamily olmo() {
  HfFamily f = like_llama(
      "olmo",
      [](ModelConfig& m) {
        m.norm = Norm::layer_norm, m.norm_gain = NormGain::none, m.norm_eps = 1e-5;
        m.context = 2048;
      },
      [](HfReader& r, ModelConfig&) { r.read_rope(); });
  add(f, {{"clip_qkv", "qkv_clip"}});
  return f;
}

HfFamily olmo2() {
  HfFamily f = like_llama(
      "olmo2",
      [](ModelConfig& m) {
        m.norm_eps = 1e-5, m.context = 2048;
        m.placement = Placement::output, m.qk_norm = QKNorm::full;
      },
      [](HfReader& r, ModelConfig&) { r.read_rope(); });
  remove_row(f, "attention_norm"), remove_row(f, "mlp_norm");
  f.rows.push_back({"attention_output_norm", "post_attention_layernorm"});
  f.rows.push_back({"mlp_output_norm", "post_feedforward_layernorm"});
  qk_norm_rows(f);
  return f;
}

/// Layers with a window turn by the local base.
void local_where_windowed(ModelConfig& m) {
  for (const std::string& kind : m.attention_pattern)
    m.position_pattern.emplace_back(kind == "window" ? "local" : "global");
}

HfFamily olmo3() {
  HfFamily f = olmo2();
  f.model_type = "olmo3";
  f.read = [](HfReader& r, ModelConfig& m) {
    r.read_windows([](HfReader&, int64_t i) { return (i + 1) % 4 != 0; }, 4096);
    m.rope_local_base = r.number("rope_theta", m.rope_base);
    r.read_rope();
    local_where_windowed(m);
  };
  return f;
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

HfFamily gemma2() {
  HfFamily f = gemma();
  f.model_type = "gemma2";
  add(f, {{"attn_logit_softcapping", "attention_soft_cap"},
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
    r.read_windows(
        [](HfReader& reader, int64_t i) {
          return (i + 1) % std::max<int64_t>(1, reader.integer("sliding_window_pattern", 6)) != 0;
        },
        4096);
    r.find("sliding_window_pattern");
    m.rope_local_base = r.number("rope_local_base_freq", 10000);
    r.read_rope();
    local_where_windowed(m);
  };
  qk_norm_rows(f);
  return f;
}

HfFamily phi() {
  HfFamily f = llama();
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
  return f;
}

HfFamily phi3() {
  HfFamily f = like_llama(
      "phi3", [](ModelConfig& m) { m.norm_eps = 1e-5, m.context = 4096; },
      [](HfReader& r, ModelConfig& m) {
        m.rope_original_context = 0;
        // Where the scaling stands in an entry of its own, this one stands beside it.
        const int64_t original = r.integer("original_max_position_embeddings", 0);
        m.rope_original_context = original;
        r.read_rope("partial_rotary_factor", 1);
        if (m.rope_scaling == RopeScale::none) m.rope_original_context = 0;
        r.read_windows(every_layer);
      });
  for (const char* piece : {"attention.q", "attention.k", "attention.v"})
    row_of(f, piece).stored = "self_attn.qkv_proj";
  for (const char* piece : {"mlp.gate", "mlp.up"}) row_of(f, piece).stored = "mlp.gate_up_proj";
  return f;
}

HfFamily nemotron() {
  HfFamily f = llama();
  f.model_type = "nemotron";
  f.entries = common_entries("norm_eps");
  add(f, {{"head_dim", "head_dim"},
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
  return f;
}

HfFamily cohere() {
  HfFamily f = llama();
  f.model_type = "cohere";
  f.entries = common_entries("layer_norm_eps");
  add(f, {{"attention_bias", "qkv_bias"},
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
  qk_norm_rows(f);
  return f;
}

HfFamily cohere2() {
  HfFamily f = cohere();
  f.model_type = "cohere2";
  add(f, {{"head_dim", "head_dim"}});
  f.fixed.clear();
  f.read = [](HfReader& r, ModelConfig& m) {
    r.read_rope();
    r.read_windows(
        [](HfReader& reader, int64_t i) {
          return (i + 1) % std::max<int64_t>(1, reader.integer("sliding_window_pattern", 4)) != 0;
        },
        4096);
    r.find("sliding_window_pattern");
    for (const std::string& kind : m.attention_pattern)
      m.position_pattern.emplace_back(kind == "window" ? "global" : "none");
  };
  return f;
}

HfFamily stablelm() {
  HfFamily f = llama();
  f.model_type = "stablelm";
  f.entries = common_entries("layer_norm_eps");
  add(f, {{"use_qkv_bias", "qkv_bias"}});
  f.fixed = {{"qk_layernorm", "false"}, {"use_parallel_residual", "false"}};
  f.defaults = [](ModelConfig& m) {
    m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5, m.context = 4096;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope("partial_rotary_factor", 0.25); };
  return f;
}

HfFamily starcoder2() {
  HfFamily f = llama();
  f.model_type = "starcoder2";
  f.entries = common_entries("norm_epsilon");
  add(f,
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
  add(f, {{"final_logit_softcapping", "final_soft_cap"}});
  f.activation = "relu2";
  remove_row(f, "mlp.gate");
  row_of(f, "mlp.up").stored = "mlp.fc1", row_of(f, "mlp.down").stored = "mlp.fc2";
  // Rotates the other way. A norm without weights is the same before and after a rotation.
  row_of(f, "attention.q").order = row_of(f, "attention.k").order = HfOrder::turned;
  return f;
}

HfFamily mixtral() {
  HfFamily f = mistral();
  f.model_type = "mixtral";
  add(f, {{"num_local_experts", "experts"}, {"num_experts_per_tok", "experts_per_token"}});
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
  add(f, {{"num_local_experts", "experts"},
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
  return f;
}

}  // namespace

std::vector<HfFamily> llama_families() {
  return {llama(),      mistral(),  granite(), smollm3(), qwen2(),    qwen3(),
          olmo(),       olmo2(),    olmo3(),   gemma(),   gemma2(),   gemma3(),
          phi(),        phi3(),     cohere(),  cohere2(), nemotron(), stablelm(),
          starcoder2(), nanochat(), mixtral(), gpt_oss()};
}

}  // namespace tally
