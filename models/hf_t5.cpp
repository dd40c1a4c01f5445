// T5 and mT5.
#include <cmath>

#include "core/error.h"
#include "models/hf_reader.h"
#include "models/hf_writer.h"

namespace tally {
namespace {

/// Positions are relative: nothing says how long a text may be.
void t5_defaults(ModelConfig& m) {
  m.architecture = Architecture::encoder_decoder;
  m.gated = m.fused_qkv = m.fused_gate_up = false;
  m.norm_eps = 1e-6, m.context = 512, m.attention_scale = 1;
  m.position = Position::t5_bias;
}

/// "relu", or a gate: "gated-gelu", whose GELU is the tanh form.
void read_t5_feed_forward(HfReader& r, ModelConfig& m) {
  const Json* entry = r.find("feed_forward_proj");
  const Json kind = entry ? *entry : Json("relu");
  const std::pair<const char*, Activation> kinds[] = {{"relu", Activation::relu},
                                                      {"gelu", Activation::gelu},
                                                      {"silu", Activation::silu},
                                                      {"gated-relu", Activation::relu},
                                                      {"gated-gelu", Activation::gelu_tanh},
                                                      {"gated-silu", Activation::silu}};
  for (const auto& [name, activation] : kinds) {
    if (kind != name) continue;
    m.activation = activation;
    m.gated = std::string_view(name).starts_with("gated");
    return;
  }
  fail(r.where("feed_forward_proj"), " = ", kind.dump(),
       " is not supported; relu, gelu and silu are, with \"gated-\" in front or not");
}

void read_t5(HfReader& r, ModelConfig& m) {
  read_t5_feed_forward(r, m);
  m.layers = r.integer("num_decoder_layers", m.encoder_layers);
  for (const char* key : {"is_encoder_decoder", "dropout_rate", "dense_act_fn", "is_gated_act",
                          "initializer_factor", "output_past"})
    r.find(key);
}

void write_t5(HfWriter& w, const ModelConfig& m) {
  std::string kind = m.activation == Activation::relu   ? "relu"
                     : m.activation == Activation::silu ? "silu"
                                                        : "gelu";
  if (m.gated) kind = "gated-" + kind;
  w["feed_forward_proj"] = kind, w["num_decoder_layers"] = m.layers;
  w["is_encoder_decoder"] = true;
}

std::vector<HfRow> t5_rows() {
  const auto gated = [](const ModelConfig& c) { return c.gated; };
  const auto plain = [](const ModelConfig& c) { return !c.gated; };
  return {{"embedding", "shared"},
          {"head", "lm_head"},
          {"encoder.position", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
          {"encoder.attention_norm", "encoder.block.#.layer.0.layer_norm"},
          {"encoder.attention.q", "encoder.block.#.layer.0.SelfAttention.q"},
          {"encoder.attention.k", "encoder.block.#.layer.0.SelfAttention.k"},
          {"encoder.attention.v", "encoder.block.#.layer.0.SelfAttention.v"},
          {"encoder.attention.out", "encoder.block.#.layer.0.SelfAttention.o"},
          {"encoder.mlp_norm", "encoder.block.#.layer.1.layer_norm"},
          {"encoder.mlp.gate", "encoder.block.#.layer.1.DenseReluDense.wi_0"},
          {.piece = "encoder.mlp.up",
           .stored = "encoder.block.#.layer.1.DenseReluDense.wi_1",
           .when = gated},
          {.piece = "encoder.mlp.up",
           .stored = "encoder.block.#.layer.1.DenseReluDense.wi",
           .when = plain},
          {"encoder.mlp.down", "encoder.block.#.layer.1.DenseReluDense.wo"},
          {"encoder.final_norm", "encoder.final_layer_norm"},
          {"decoder.position", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
          {"decoder.attention_norm", "decoder.block.#.layer.0.layer_norm"},
          {"decoder.attention.q", "decoder.block.#.layer.0.SelfAttention.q"},
          {"decoder.attention.k", "decoder.block.#.layer.0.SelfAttention.k"},
          {"decoder.attention.v", "decoder.block.#.layer.0.SelfAttention.v"},
          {"decoder.attention.out", "decoder.block.#.layer.0.SelfAttention.o"},
          {"decoder.cross_norm", "decoder.block.#.layer.1.layer_norm"},
          {"decoder.cross_attention.q", "decoder.block.#.layer.1.EncDecAttention.q"},
          {"decoder.cross_attention.k", "decoder.block.#.layer.1.EncDecAttention.k"},
          {"decoder.cross_attention.v", "decoder.block.#.layer.1.EncDecAttention.v"},
          {"decoder.cross_attention.out", "decoder.block.#.layer.1.EncDecAttention.o"},
          {"decoder.mlp_norm", "decoder.block.#.layer.2.layer_norm"},
          {"decoder.mlp.gate", "decoder.block.#.layer.2.DenseReluDense.wi_0"},
          {.piece = "decoder.mlp.up",
           .stored = "decoder.block.#.layer.2.DenseReluDense.wi_1",
           .when = gated},
          {.piece = "decoder.mlp.up",
           .stored = "decoder.block.#.layer.2.DenseReluDense.wi",
           .when = plain},
          {"decoder.mlp.down", "decoder.block.#.layer.2.DenseReluDense.wo"},
          {"decoder.final_norm", "decoder.final_layer_norm"}};
}

HfFamily t5() {
  HfFamily f{};
  f.model_type = "t5";
  f.entries = {{"num_layers", "encoder_layers", true},
               {"d_model", "d_model", true},
               {"num_heads", "heads", true},
               {"d_kv", "head_dim", true},
               {"d_ff", "d_ff", true},
               {"vocab_size", "vocab", true},
               {"n_positions", "context"},
               {"relative_attention_num_buckets", "t5_buckets"},
               {"relative_attention_max_distance", "t5_max_distance"},
               {"layer_norm_epsilon", "norm_eps"},
               {"tie_word_embeddings", "tied_head"}};
  f.activation_key = "", f.activation = "";
  f.defaults = [](ModelConfig& m) {
    t5_defaults(m);
    m.tied_head = true;
  };
  f.read = [](HfReader& r, ModelConfig& m) {
    read_t5(r, m);
    if (r.flag("scale_decoder_outputs", m.tied_head))
      m.logit_scale = 1 / std::sqrt(double(m.d_model));
  };
  f.write = [](HfWriter& w, const ModelConfig& m) {
    write_t5(w, m);
    w["scale_decoder_outputs"] = m.logit_scale != 1;
  };
  f.rows = t5_rows();
  // The table again under the names of both sides, and a table that early releases carry unused.
  f.buffers = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
               "EncDecAttention.relative_attention_bias.weight"};
  return f;
}

HfFamily mt5() {
  HfFamily f = t5();
  f.model_type = "mt5";
  f.defaults = t5_defaults;
  f.read = read_t5, f.write = write_t5;  // its decoder's output is never scaled
  return f;
}

}  // namespace

std::vector<HfFamily> t5_families() { return {t5(), mt5()}; }

}  // namespace tally
