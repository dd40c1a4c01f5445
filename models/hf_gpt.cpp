// Families after GPT: LayerNorm, one branch in the feed-forward layer.
#include <cmath>

#include "core/error.h"
#include "models/hf_common.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

HfFamily gpt1() {
  HfFamily f{};
  f.model_type = "openai-gpt";
  f.entries = {{"n_layer", "layers", true},       {"n_embd", "d_model", true},
               {"n_head", "heads", true},         {"vocab_size", "vocab", true},
               {"n_positions", "context", true},  {"layer_norm_epsilon", "norm_eps"},
               {"initializer_range", "init_std"}, {"tie_word_embeddings", "tied_head"}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m), use_biases(m);
    m.position = Position::learned, m.tied_head = true;
    m.placement = Placement::post;
    // What this family calls gelu is the tanh form.
    m.activation = Activation::gelu_tanh;
  };
  f.read = [](HfReader& r, ModelConfig&) { r.only("afn", "gelu"); };
  f.write = [](HfWriter& w, const ModelConfig&) { w["afn"] = "gelu"; };
  f.prefix = "transformer.", f.blocks = "h.";
  f.rows = {{"embedding", "tokens_embed"},
            {"position", "positions_embed"},
            {"attention.q", "attn.c_attn", true},
            {"attention.k", "attn.c_attn", true},
            {"attention.v", "attn.c_attn", true},
            {"attention.out", "attn.c_proj", true},
            {"attention_norm", "ln_1"},
            {"mlp.up", "mlp.c_fc", true},
            {"mlp.down", "mlp.c_proj", true},
            {"mlp_norm", "ln_2"},
            {"head", "lm_head"}};
  f.buffers = {".attn.bias"};
  return f;
}

HfFamily gpt2() {
  HfFamily f = gpt1();
  f.model_type = "gpt2";
  f.entries.push_back({"n_inner", "d_ff"});
  f.fixed = {{"scale_attn_weights", "true"},
             {"scale_attn_by_inverse_layer_idx", "false"},
             {"reorder_and_upcast_attn", "false"}};
  f.activation_key = "activation_function", f.activation = "gelu_new";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m), use_biases(m);
    m.position = Position::learned, m.tied_head = true, m.init = Init::gpt2;
  };
  f.read = nullptr, f.write = nullptr;
  f.rows[0].stored = "wte", f.rows[1].stored = "wpe";
  f.rows.push_back({"final_norm", "ln_f"});
  f.buffers = {".attn.bias", ".attn.masked_bias"};
  return f;
}

HfFamily gpt_j() {
  HfFamily f{};
  f.model_type = "gptj";
  f.entries = {{"n_layer", "layers", true},         {"n_embd", "d_model", true},
               {"n_head", "heads", true},           {"n_inner", "d_ff"},
               {"vocab_size", "vocab", true},       {"n_positions", "context", true},
               {"layer_norm_epsilon", "norm_eps"},  {"initializer_range", "init_std"},
               {"tie_word_embeddings", "tied_head"}};
  f.activation_key = "activation_function", f.activation = "gelu_new";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m);
    m.parallel = Parallel::shared_norm, m.mlp_bias = true;
    m.rope_layout = RopeLayout::interleaved;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    const int64_t turned = r.integer("rotary_dim", 64), head = m.heads ? m.d_model / m.heads : 0;
    check(turned >= 2 && turned <= head, r.where("rotary_dim"), " = ", turned,
          " must be from 2 to n_embd / n_head = ", head);
    m.rope_fraction = double(turned) / double(head);
    // An untied head has a bias, a tied one has too: it is a tensor of its own.
    m.head_bias = true;
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["rotary_dim"] = static_cast<int64_t>(std::lround(m.rope_fraction * double(m.head_dim)));
  };
  f.prefix = "transformer.", f.blocks = "h.";
  f.rows = {{"embedding", "wte"},           {"attention_norm", "ln_1"},
            {"attention.q", "attn.q_proj"}, {"attention.k", "attn.k_proj"},
            {"attention.v", "attn.v_proj"}, {"attention.out", "attn.out_proj"},
            {"mlp.up", "mlp.fc_in"},        {"mlp.down", "mlp.fc_out"},
            {"final_norm", "ln_f"},         {"head", "lm_head"}};
  f.buffers = {".attn.bias", ".attn.masked_bias"};
  return f;
}

HfFamily gpt_neo() {
  HfFamily f{};
  f.model_type = "gpt_neo";
  f.entries = {{"num_layers", "layers", true},      {"hidden_size", "d_model", true},
               {"num_heads", "heads", true},        {"intermediate_size", "d_ff"},
               {"vocab_size", "vocab", true},       {"max_position_embeddings", "context", true},
               {"layer_norm_epsilon", "norm_eps"},  {"initializer_range", "init_std"},
               {"tie_word_embeddings", "tied_head"}};
  f.activation_key = "activation_function", f.activation = "gelu_new";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m);
    m.attention_output_bias = m.mlp_bias = m.tied_head = true;
    m.position = Position::learned;
    m.attention_scale = 1;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    // [[["global", "local"], 6]] and the list it stands for; one of them is enough.
    const Json* types = r.find("attention_types");
    const Json* list = r.find("attention_layers");
    std::vector<std::string> kinds;
    const auto add = [&](const Json& kind) {
      check(kind == "global" || kind == "local", r.where("attention_types"), ": ", kind.dump(),
            " is not a kind of layer; global and local are");
      kinds.emplace_back(kind == "global" ? "full" : "window");
    };
    if (list && list->is_array()) {
      for (const Json& kind : *list) add(kind);
    } else if (types && types->is_array() && types->size() == 1 && (*types)[0].is_array() &&
               (*types)[0].size() == 2 && (*types)[0][0].is_array()) {
      for (const Json& kind : (*types)[0][0]) add(kind);
    } else {
      fail(r.where("attention_types"), " must be [[[kinds of layers], times]]");
    }
    const int64_t window = r.integer("window_size", 256);
    if (std::find(kinds.begin(), kinds.end(), "window") == kinds.end()) return;
    m.attention_pattern = kinds, m.window = window;
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    Json kinds = Json::array();
    for (int64_t i = 0; i < m.layers; ++i) {
      const auto& p = m.attention_pattern;
      const bool slides = !p.empty() && p[static_cast<size_t>(i) % p.size()] == "window";
      kinds.push_back(slides ? "local" : "global");
    }
    w["attention_layers"] = kinds;
    w["attention_types"] = {{kinds, 1}};
    if (m.window > 0) w["window_size"] = m.window;
  };
  f.prefix = "transformer.", f.blocks = "h.";
  f.rows = {{"embedding", "wte"},
            {"position", "wpe"},
            {"attention_norm", "ln_1"},
            {"attention.q", "attn.attention.q_proj"},
            {"attention.k", "attn.attention.k_proj"},
            {"attention.v", "attn.attention.v_proj"},
            {"attention.out", "attn.attention.out_proj"},
            {"mlp_norm", "ln_2"},
            {"mlp.up", "mlp.c_fc"},
            {"mlp.down", "mlp.c_proj"},
            {"final_norm", "ln_f"},
            {"head", "lm_head"}};
  f.buffers = {".attn.attention.bias", ".attn.attention.masked_bias"};
  return f;
}

HfFamily opt() {
  HfFamily f{};
  f.model_type = "opt";
  f.entries = {{"num_hidden_layers", "layers", true},
               {"hidden_size", "d_model", true},
               {"num_attention_heads", "heads", true},
               {"ffn_dim", "d_ff", true},
               {"vocab_size", "vocab", true},
               {"max_position_embeddings", "context"},
               {"init_std", "init_std"},
               {"tie_word_embeddings", "tied_head"}};
  f.fixed = {{"_remove_final_layer_norm", "false"},
             {"enable_bias", "true"},
             {"layer_norm_elementwise_affine", "true"}};
  f.activation_key = "activation_function", f.activation = "relu";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m), use_biases(m);
    m.context = 2048, m.tied_head = true;
    m.position = Position::learned, m.position_offset = 2;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    if (!r.flag("do_layer_norm_before", true)) m.placement = Placement::post;
    const int64_t width = r.integer("word_embed_proj_dim", m.d_model);
    if (width != m.d_model) m.embedding_dim = width;
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["do_layer_norm_before"] = m.placement == Placement::pre;
    w["word_embed_proj_dim"] = m.embedding_width();
  };
  f.prefix = "model.decoder.", f.blocks = "layers.";
  f.rows = {{"embedding", "embed_tokens"},
            {"position", "embed_positions"},
            {"attention_norm", "self_attn_layer_norm"},
            {"attention.q", "self_attn.q_proj"},
            {"attention.k", "self_attn.k_proj"},
            {"attention.v", "self_attn.v_proj"},
            {"attention.out", "self_attn.out_proj"},
            {"mlp_norm", "final_layer_norm"},
            {"mlp.up", "fc1"},
            {"mlp.down", "fc2"},
            {"final_norm", "final_layer_norm"},
            {"project_in", "project_in"},
            {"project_out", "project_out"},
            {"head", "lm_head"}};
  return f;
}

/// Entries that others have at the top stand in attn_config.
void read_mpt(HfReader& r, ModelConfig& m) {
  r.only("logit_scale", nullptr);
  // The library reads neither of these: always on, always 4.
  r.find("learned_pos_emb"), r.find("expansion_ratio"), r.find("norm_type");
  r.only("no_bias", true), r.only("embedding_fraction", 1.0);
  const Json* attention = r.find("attn_config");
  check(attention && attention->is_object(), r.where("attn_config"), " must be an object");
  const auto only = [&](const char* key, const Json& value) {
    const Json given = attention->value(key, value);
    check(given.is_null() || given == value, r.where("attn_config"), ": ", key, " = ", given.dump(),
          " is not supported; only ", value.dump(), " is");
  };
  only("alibi", true), only("alibi_bias_max", 8), only("attn_type", "multihead_attention");
  only("attn_uses_sequence_id", false), only("prefix_lm", false), only("qk_ln", false);
  const auto number = [&](const char* key) {
    const Json given = attention->value(key, Json());
    check(given.is_null() || given.is_number(), r.where("attn_config"), ": ", key,
          " must be a number; it is ", given.dump());
    return given.is_null() ? 0 : given.get<double>();
  };
  m.qkv_clip = number("clip_qkv"), m.attention_scale = number("softmax_scale");
}

HfFamily mpt() {
  HfFamily f{};
  f.model_type = "mpt";
  f.entries = {{"n_layers", "layers", true},      {"d_model", "d_model", true},
               {"n_heads", "heads", true},        {"vocab_size", "vocab", true},
               {"max_seq_len", "context", true},  {"layer_norm_epsilon", "norm_eps"},
               {"initializer_range", "init_std"}, {"tie_word_embeddings", "tied_head"}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m);
    m.norm_bias = false, m.tied_head = true;
    // Its slopes are those of Press et al. for every number of heads.
    m.position = Position::alibi, m.activation = Activation::gelu;
  };
  f.read = read_mpt;
  f.write = [](HfWriter& w, const ModelConfig& m) {
    Json attention = {{"alibi", true}, {"alibi_bias_max", 8}};
    attention["clip_qkv"] = m.qkv_clip > 0 ? Json(m.qkv_clip) : Json();
    attention["softmax_scale"] = m.attention_scale > 0 ? Json(m.attention_scale) : Json();
    w["attn_config"] = attention;
  };
  f.prefix = "transformer.", f.blocks = "blocks.";
  f.rows = {{"embedding", "wte"},
            {"attention_norm", "norm_1"},
            {"attention.q", "attn.Wqkv"},
            {"attention.k", "attn.Wqkv"},
            {"attention.v", "attn.Wqkv"},
            {"attention.out", "attn.out_proj"},
            {"mlp_norm", "norm_2"},
            {"mlp.up", "ffn.up_proj"},
            {"mlp.down", "ffn.down_proj"},
            {"final_norm", "norm_f"},
            {"head", "lm_head"}};
  return f;
}

}  // namespace

std::vector<HfFamily> gpt_families() { return {gpt1(), gpt2(), gpt_j(), gpt_neo(), opt(), mpt()}; }

}  // namespace tally
