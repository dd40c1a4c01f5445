// BERT, Marian, and the Transformer of 2017 as a module written for a recorded case.
#include <cmath>

#include "core/error.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

void encoder_defaults(ModelConfig& m, Architecture architecture) {
  m.architecture = architecture;
  m.gated = m.fused_qkv = m.fused_gate_up = false;
}
/// LayerNorm behind each sum, and biases everywhere: the layers of 2017.
void post_norm_defaults(ModelConfig& m) {
  m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5;
  m.placement = Placement::post, m.tied_head = true;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = true;
}
void ignore(HfReader& r, std::initializer_list<const char*> keys) {
  for (const char* key : keys) r.find(key);
}

HfFamily bert() {
  HfFamily f{};
  f.model_type = "bert";
  f.entries = {{"num_hidden_layers", "layers", true},  {"hidden_size", "d_model", true},
               {"num_attention_heads", "heads", true}, {"intermediate_size", "d_ff", true},
               {"vocab_size", "vocab", true},          {"max_position_embeddings", "context", true},
               {"type_vocab_size", "segment_types"},   {"layer_norm_eps", "norm_eps"},
               {"initializer_range", "init_std"}};
  f.fixed = {{"position_embedding_type", "\"absolute\""},
             {"is_decoder", "false"},
             {"tie_word_embeddings", "true"}};
  f.activation_key = "hidden_act", f.activation = "gelu";
  f.defaults = [](ModelConfig& m) {
    encoder_defaults(m, Architecture::encoder);
    post_norm_defaults(m);
    m.norm_eps = 1e-12, m.embedding_norm = m.head_bias = true;
    m.position = Position::learned, m.segment_types = 2;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    m.padding_id = r.integer("pad_token_id", 0);
    ignore(r, {"attention_probs_dropout_prob", "hidden_dropout_prob"});
  };
  f.write = [](HfWriter& w, const ModelConfig& m) { w["pad_token_id"] = m.padding_id; };
  f.prefix = "bert.";
  f.rows = {{"embedding", "embeddings.word_embeddings"},
            {"types", "embeddings.token_type_embeddings"},
            {"encoder.position", "embeddings.position_embeddings"},
            {"encoder.embedding_norm", "embeddings.LayerNorm"},
            {"encoder.attention.q", "encoder.layer.#.attention.self.query"},
            {"encoder.attention.k", "encoder.layer.#.attention.self.key"},
            {"encoder.attention.v", "encoder.layer.#.attention.self.value"},
            {"encoder.attention.out", "encoder.layer.#.attention.output.dense"},
            {"encoder.attention_norm", "encoder.layer.#.attention.output.LayerNorm"},
            {"encoder.mlp.up", "encoder.layer.#.intermediate.dense"},
            {"encoder.mlp.down", "encoder.layer.#.output.dense"},
            {"encoder.mlp_norm", "encoder.layer.#.output.LayerNorm"},
            {"head.transform", "cls.predictions.transform.dense"},
            {"head.norm", "cls.predictions.transform.LayerNorm"},
            {"head", "cls.predictions"}};
  // The table again, and parts of the training for other tasks.
  f.buffers = {"position_ids",
               "cls.predictions.decoder.weight",
               "cls.predictions.decoder.bias",
               "pooler.dense.weight",
               "pooler.dense.bias",
               "cls.seq_relationship.weight",
               "cls.seq_relationship.bias"};
  return f;
}

HfFamily marian() {
  HfFamily f{};
  f.model_type = "marian";
  f.entries = {{"decoder_layers", "layers", true},
               {"encoder_layers", "encoder_layers", true},
               {"d_model", "d_model", true},
               {"decoder_attention_heads", "heads", true},
               {"encoder_attention_heads", "encoder_heads", true},
               {"decoder_ffn_dim", "d_ff", true},
               {"encoder_ffn_dim", "encoder_d_ff", true},
               {"vocab_size", "vocab", true},
               {"max_position_embeddings", "context"},
               {"init_std", "init_std"}};
  f.fixed = {{"share_encoder_decoder_embeddings", "true"},
             {"tie_word_embeddings", "true"},
             {"static_position_embeddings", "true"},
             {"normalize_before", "false"},
             {"normalize_embedding", "false"},
             {"add_final_layer_norm", "false"}};
  f.activation_key = "activation_function", f.activation = "gelu";
  f.defaults = [](ModelConfig& m) {
    encoder_defaults(m, Architecture::encoder_decoder);
    post_norm_defaults(m);
    m.head_bias = true, m.context = 1024;
    m.position = Position::sinusoidal, m.sinusoid_layout = SinusoidLayout::halves;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    if (r.flag("scale_embedding", false)) m.embedding_scale = std::sqrt(double(m.d_model));
    m.padding_id = r.integer("pad_token_id", 58100);
    r.only("decoder_vocab_size", m.vocab);
    ignore(r, {"is_encoder_decoder", "activation_dropout", "encoder_layerdrop", "decoder_layerdrop",
               "num_hidden_layers", "add_bias_logits", "extra_pos_embeddings", "bad_words_ids"});
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    w["is_encoder_decoder"] = true, w["scale_embedding"] = m.embedding_scale != 1;
    w["pad_token_id"] = w["decoder_start_token_id"] = m.padding_id;
    w["decoder_vocab_size"] = m.vocab;
  };
  f.prefix = "model.";
  f.rows = {{"embedding", "shared"},
            {.piece = "head", .stored = "final_logits_bias", .buffer = true},
            {"encoder.attention.q", "encoder.layers.#.self_attn.q_proj"},
            {"encoder.attention.k", "encoder.layers.#.self_attn.k_proj"},
            {"encoder.attention.v", "encoder.layers.#.self_attn.v_proj"},
            {"encoder.attention.out", "encoder.layers.#.self_attn.out_proj"},
            {"encoder.attention_norm", "encoder.layers.#.self_attn_layer_norm"},
            {"encoder.mlp.up", "encoder.layers.#.fc1"},
            {"encoder.mlp.down", "encoder.layers.#.fc2"},
            {"encoder.mlp_norm", "encoder.layers.#.final_layer_norm"},
            {"decoder.attention.q", "decoder.layers.#.self_attn.q_proj"},
            {"decoder.attention.k", "decoder.layers.#.self_attn.k_proj"},
            {"decoder.attention.v", "decoder.layers.#.self_attn.v_proj"},
            {"decoder.attention.out", "decoder.layers.#.self_attn.out_proj"},
            {"decoder.attention_norm", "decoder.layers.#.self_attn_layer_norm"},
            {"decoder.cross_attention.q", "decoder.layers.#.encoder_attn.q_proj"},
            {"decoder.cross_attention.k", "decoder.layers.#.encoder_attn.k_proj"},
            {"decoder.cross_attention.v", "decoder.layers.#.encoder_attn.v_proj"},
            {"decoder.cross_attention.out", "decoder.layers.#.encoder_attn.out_proj"},
            {"decoder.cross_norm", "decoder.layers.#.encoder_attn_layer_norm"},
            {"decoder.mlp.up", "decoder.layers.#.fc1"},
            {"decoder.mlp.down", "decoder.layers.#.fc2"},
            {"decoder.mlp_norm", "decoder.layers.#.final_layer_norm"}};
  f.buffers = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
               "embed_positions.weight", "lm_head.weight"};
  return f;
}

/// Rows of one side of the Transformer of 2017 as torch.nn names them: q, k and v in one tensor.
void add_torch_layer(std::vector<HfRow>& rows, bool decoder) {
  const auto fused = [&](std::string_view piece, std::string_view stored) {
    rows.push_back({.piece = piece, .stored = stored, .underscore = true});
  };
  if (!decoder) {
    for (const char* piece : {"encoder.attention.q", "encoder.attention.k", "encoder.attention.v"})
      fused(piece, "encoder_layers.#.self_attn.in_proj");
    rows.insert(rows.end(), {{"encoder.attention.out", "encoder_layers.#.self_attn.out_proj"},
                             {"encoder.attention_norm", "encoder_layers.#.norm1"},
                             {"encoder.mlp_norm", "encoder_layers.#.norm2"},
                             {"encoder.mlp.up", "encoder_layers.#.linear1"},
                             {"encoder.mlp.down", "encoder_layers.#.linear2"}});
    return;
  }
  for (const char* piece : {"decoder.attention.q", "decoder.attention.k", "decoder.attention.v"})
    fused(piece, "decoder_layers.#.self_attn.in_proj");
  for (const char* piece :
       {"decoder.cross_attention.q", "decoder.cross_attention.k", "decoder.cross_attention.v"})
    fused(piece, "decoder_layers.#.multihead_attn.in_proj");
  rows.insert(rows.end(),
              {{"decoder.attention.out", "decoder_layers.#.self_attn.out_proj"},
               {"decoder.cross_attention.out", "decoder_layers.#.multihead_attn.out_proj"},
               {"decoder.attention_norm", "decoder_layers.#.norm1"},
               {"decoder.cross_norm", "decoder_layers.#.norm2"},
               {"decoder.mlp_norm", "decoder_layers.#.norm3"},
               {"decoder.mlp.up", "decoder_layers.#.linear1"},
               {"decoder.mlp.down", "decoder_layers.#.linear2"}});
}

HfFamily transformer_2017() {
  HfFamily f{};
  f.model_type = "transformer_2017_ref";
  f.entries = {{"decoder_layers", "layers", true},  {"encoder_layers", "encoder_layers", true},
               {"hidden_size", "d_model", true},    {"num_attention_heads", "heads", true},
               {"intermediate_size", "d_ff", true}, {"vocab_size", "vocab", true},
               {"layer_norm_eps", "norm_eps", true}};
  f.fixed = {{"tie_word_embeddings", "true"}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) {
    encoder_defaults(m, Architecture::encoder_decoder);
    post_norm_defaults(m);
    m.activation = Activation::relu, m.position = Position::sinusoidal, m.context = 512;
  };
  f.read = [](HfReader&, ModelConfig& m) { m.embedding_scale = std::sqrt(double(m.d_model)); };
  f.rows = {{"embedding", "embed_tokens"}};
  add_torch_layer(f.rows, false);
  add_torch_layer(f.rows, true);
  return f;
}

}  // namespace

std::vector<HfFamily> encoder_families() { return {bert(), marian(), transformer_2017()}; }

}  // namespace tally
