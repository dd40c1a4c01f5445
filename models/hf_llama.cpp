// Families with the names of LLaMA: model.layers.N.self_attn.q_proj and their like.
#include "models/hf_common.h"

#include <algorithm>

#include "core/error.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {

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

void add_entries(HfFamily& f, std::initializer_list<HfEntry> entries) {
  f.entries.insert(f.entries.end(), entries);
}

void add_qk_norm(HfFamily& f) {
  f.rows.push_back({"attention.q_norm", "self_attn.q_norm"});
  f.rows.push_back({"attention.k_norm", "self_attn.k_norm"});
}

void turn_windows_locally(ModelConfig& m) {
  for (const std::string& kind : m.attention_pattern)
    m.position_pattern.emplace_back(kind == "window" ? "local" : "global");
}

HfFamily llama_family() {
  HfFamily f{};
  f.model_type = "llama";
  f.entries = common_entries("rms_norm_eps");
  add_entries(f, {{"head_dim", "head_dim"},
                  {"attention_bias", "qkv_bias"},
                  {"attention_bias", "attention_output_bias"},
                  {"mlp_bias", "mlp_bias"}});
  f.fixed = {{"partial_rotary_factor", "1.0"}, {"rope_interleaved", "false"}};
  f.activation_key = "hidden_act", f.activation = "silu";
  f.defaults = [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 2048; };
  f.read = [](HfReader& r, ModelConfig&) { r.read_rope(); };
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(); };
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

HfFamily like_llama(const char* model_type, void (*defaults)(ModelConfig&),
                    void (*read)(HfReader&, ModelConfig&)) {
  HfFamily f = llama_family();
  f.model_type = model_type, f.defaults = defaults, f.read = read;
  f.fixed.clear();
  return f;
}

namespace {

HfFamily mistral() {
  HfFamily f = like_llama(
      "mistral", [](ModelConfig& m) { m.norm_eps = 1e-6, m.context = 131072; },
      [](HfReader& r, ModelConfig&) {
        r.read_rope();
        r.read_windows(every_layer, 4096);
      });
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope(), w.windows(); };
  return f;
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
  add_entries(f, {{"embedding_multiplier", "embedding_scale"},
                  {"residual_multiplier", "residual_scale"},
                  {"attention_multiplier", "attention_scale"}});
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["logits_scaling"] = 1 / m.logit_scale;
    w.rope();
  };
  return f;
}

HfFamily smollm3() {
  HfFamily f = like_llama(
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
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w.rope(), w.windows();
    w["use_sliding_window"] = m.window > 0;
    Json turns = Json::array();
    for (int64_t i = 0; i < m.layers; ++i) {
      const auto& p = m.position_pattern;
      const bool none = !p.empty() && p[static_cast<size_t>(i) % p.size()] == "none";
      turns.push_back(none ? 0 : 1);
    }
    w["no_rope_layers"] = turns;
  };
  return f;
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
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w.rope(), w.windows();
    w["use_sliding_window"] = m.window > 0;
  };
  return f;
}

HfFamily qwen3() {
  HfFamily f = qwen2();
  f.model_type = "qwen3";
  add_entries(f, {{"attention_bias", "qkv_bias"}, {"attention_bias", "attention_output_bias"}});
  f.defaults = [](ModelConfig& m) {
    m.norm_eps = 1e-6, m.context = 32768, m.head_dim = 128, m.qk_norm = QKNorm::head;
  };
  add_qk_norm(f);
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
  add_entries(f, {{"clip_qkv", "qkv_clip"}});
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
  add_qk_norm(f);
  return f;
}

HfFamily olmo3() {
  HfFamily f = olmo2();
  f.model_type = "olmo3";
  f.read = [](HfReader& r, ModelConfig& m) {
    r.read_windows([](HfReader&, int64_t i) { return (i + 1) % 4 != 0; }, 4096);
    m.rope_local_base = r.number("rope_theta", m.rope_base);
    r.read_rope();
    turn_windows_locally(m);
  };
  f.write = [](HfWriter& w, const ModelConfig&) { w.rope_by_layer(); };
  return f;
}

}  // namespace

std::vector<HfFamily> llama_families() {
  return {llama_family(), mistral(), granite(), smollm3(), qwen2(),
          qwen3(),        olmo(),    olmo2(),   olmo3()};
}

}  // namespace tally
