// GPT-NeoX, BLOOM and Falcon: one product for query, key and value, head by head.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/hf_common.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

HfFamily gpt_neox() {
  HfFamily f{};
  f.model_type = "gpt_neox";
  f.entries = {{"num_hidden_layers", "layers", true},
               {"hidden_size", "d_model", true},
               {"num_attention_heads", "heads", true},
               {"intermediate_size", "d_ff", true},
               {"vocab_size", "vocab", true},
               {"max_position_embeddings", "context"},
               {"layer_norm_eps", "norm_eps"},
               {"initializer_range", "init_std"},
               {"rotary_emb_base", "rope_base"},
               {"attention_bias", "qkv_bias"},
               {"attention_bias", "attention_output_bias"},
               {"tie_word_embeddings", "tied_head"}};
  f.activation_key = "hidden_act", f.activation = "gelu";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m), use_biases(m);
    m.context = 2048;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    if (r.flag("use_parallel_residual", true)) m.parallel = Parallel::two_norms;
    r.read_rope("rotary_pct", 0.25);
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["use_parallel_residual"] = m.parallel == Parallel::two_norms;
    w.rope("rotary_pct", "");
  };
  f.prefix = "gpt_neox.", f.blocks = "layers.";
  f.rows = {{"embedding", "embed_in"},
            {"attention_norm", "input_layernorm"},
            {"attention.q", "attention.query_key_value", false, HfOrder::groups},
            {"attention.k", "attention.query_key_value", false, HfOrder::groups},
            {"attention.v", "attention.query_key_value", false, HfOrder::groups},
            {"attention.out", "attention.dense"},
            {"mlp_norm", "post_attention_layernorm"},
            {"mlp.up", "mlp.dense_h_to_4h"},
            {"mlp.down", "mlp.dense_4h_to_h"},
            {"final_norm", "final_layer_norm"},
            {"head", "embed_out"}};
  f.buffers = {".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq"};
  return f;
}

HfFamily bloom() {
  HfFamily f = gpt_neox();
  f.model_type = "bloom";
  f.entries = {{"n_layer", "layers"},
               {"num_hidden_layers", "layers"},
               {"hidden_size", "d_model"},
               {"n_embed", "d_model"},
               {"n_head", "heads"},
               {"num_attention_heads", "heads"},
               {"vocab_size", "vocab", true},
               {"seq_length", "context"},
               {"layer_norm_epsilon", "norm_eps"},
               {"initializer_range", "init_std"},
               {"tie_word_embeddings", "tied_head"}};
  f.fixed = {{"apply_residual_connection_post_layernorm", "false"}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m), use_biases(m);
    m.context = 2048, m.tied_head = m.embedding_norm = true;
    m.position = Position::alibi, m.activation = Activation::gelu_tanh;
  };
  f.read = nullptr, f.write = nullptr;
  f.prefix = "transformer.", f.blocks = "h.";
  for (HfRow& row : f.rows) {
    if (row.stored == "attention.query_key_value") row.stored = "self_attention.query_key_value";
    if (row.stored == "attention.dense") row.stored = "self_attention.dense";
    if (row.piece == "embedding") row.stored = "word_embeddings";
    if (row.piece == "final_norm") row.stored = "ln_f";
    if (row.piece == "head") row.stored = "lm_head";
  }
  f.rows.push_back({"embedding_norm", "word_embeddings_layernorm"});
  f.buffers = {};
  return f;
}

bool has_two_norms(const ModelConfig& m) { return m.parallel == Parallel::two_norms; }
bool has_one_norm(const ModelConfig& m) { return !has_two_norms(m); }

void read_falcon(HfReader& r, ModelConfig& m) {
  const bool grouped = r.flag("new_decoder_architecture", false);
  const bool one_key = r.flag("multi_query", true);
  const bool parallel = r.flag("parallel_attn", true) || grouped;
  // The number of heads stands there whether it is used or not.
  const int64_t kv_heads = r.integer("num_kv_heads", m.heads);
  m.kv_heads = grouped ? kv_heads : one_key ? 1 : m.heads;
  const int64_t norms = r.integer("num_ln_in_parallel_attn", grouped ? 2 : 1);
  check(norms == 1 || norms == 2, r.where("num_ln_in_parallel_attn"), " = ", norms,
        " must be 1 or 2");
  if (parallel) m.parallel = grouped && norms == 2 ? Parallel::two_norms : Parallel::shared_norm;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = r.flag("bias", false);
  r.read_rope();
  if (!r.flag("alibi", false)) return;
  m.position = Position::alibi;
  // Added before the scores are divided by sqrt(head_dim).
  m.alibi_scale = 1 / std::sqrt(double(m.d_model) / double(m.heads));
}

void write_falcon(HfWriter& w, const ModelConfig& m) {
  const bool grouped = has_two_norms(m) ||
                       (m.kv_heads != 1 && m.kv_heads != m.heads && m.parallel != Parallel::none);
  w["new_decoder_architecture"] = grouped;
  w["num_ln_in_parallel_attn"] = grouped ? Json(has_two_norms(m) ? 2 : 1) : Json();
  w["multi_query"] = m.kv_heads == 1;
  w["num_kv_heads"] = m.kv_heads;
  w["parallel_attn"] = m.parallel != Parallel::none;
  w["bias"] = m.qkv_bias;
  w["alibi"] = m.position == Position::alibi;
  w.rope();
}

HfFamily falcon() {
  HfFamily f = bloom();
  f.model_type = "falcon";
  f.entries = {{"num_hidden_layers", "layers", true},  {"hidden_size", "d_model", true},
               {"num_attention_heads", "heads", true}, {"ffn_hidden_size", "d_ff"},
               {"vocab_size", "vocab", true},          {"max_position_embeddings", "context"},
               {"layer_norm_epsilon", "norm_eps"},     {"initializer_range", "init_std"},
               {"tie_word_embeddings", "tied_head"}};
  f.fixed = {};
  f.activation_key = "activation", f.activation = "gelu";
  f.defaults = [](ModelConfig& m) {
    use_layer_norm(m);
    m.context = 2048, m.tied_head = true;
  };
  f.read = read_falcon, f.write = write_falcon;
  f.rows.pop_back();  // no norm of the embedding
  for (HfRow& row : f.rows) {
    if (row.piece == "attention_norm") row.when = has_one_norm;
  }
  std::erase_if(f.rows, [](const HfRow& row) { return row.piece == "mlp_norm"; });
  f.rows.push_back({.piece = "attention_norm", .stored = "ln_attn", .when = has_two_norms});
  f.rows.push_back({.piece = "mlp_norm", .stored = "ln_mlp", .when = has_two_norms});
  f.rows.push_back(
      {.piece = "mlp_norm", .stored = "post_attention_layernorm", .when = has_one_norm});
  f.buffers = {"rotary_emb.inv_freq"};
  return f;
}

}  // namespace

std::vector<HfFamily> neox_families() { return {gpt_neox(), bloom(), falcon()}; }

}  // namespace tally
