// The rows of the zoo that are no decoders.
#include <cmath>

#include "models/zoo.h"

namespace tally {
namespace {

struct EncoderShape {
  int64_t layers, d_model, heads, d_ff, vocab;
  int64_t head_dim = 0;
};

ModelConfig encoder_model(const EncoderShape& s, Architecture architecture) {
  ModelConfig m;
  m.architecture = architecture;
  m.layers = s.layers, m.d_model = s.d_model, m.heads = s.heads, m.head_dim = s.head_dim;
  m.d_ff = s.d_ff, m.vocab = s.vocab, m.context = 512;
  m.gated = m.fused_qkv = m.fused_gate_up = false;
  m.padding_id = 0;
  return m;
}

/// Post-norm LayerNorm with biases everywhere, dropout 0.1: the layers of 2017 and of BERT.
void make_post_norm(ModelConfig& m) {
  m.norm = Norm::layer_norm, m.norm_bias = true, m.placement = Placement::post;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = m.tied_head = true;
  m.embedding_dropout = m.residual_dropout = 0.1;
}

/// Devlin et al. 2018, sec. 3: learned positions, two kinds of segments, GELU, a head of its own.
ModelConfig bert(const EncoderShape& s) {
  ModelConfig m = encoder_model(s, Architecture::encoder);
  make_post_norm(m);
  m.norm_eps = 1e-12, m.embedding_norm = m.head_bias = true;
  m.activation = Activation::gelu, m.position = Position::learned, m.segment_types = 2;
  m.attention_dropout = 0.1;
  m.init = Init::trunc_normal;
  return m;
}

/// Vaswani et al. 2017, sec. 3 and 5.4: the table times sqrt(d_model), sinusoids, ReLU.
ModelConfig transformer_of_2017(const EncoderShape& s) {
  ModelConfig m = encoder_model(s, Architecture::encoder_decoder);
  make_post_norm(m);
  m.activation = Activation::relu, m.position = Position::sinusoidal;
  m.embedding_scale = std::sqrt(static_cast<double>(s.d_model));
  m.label_smoothing = 0.1;
  m.init_std = 1 / m.embedding_scale;
  return m;
}

/// Raffel et al. 2019, sec. 2.1: relative biases, scores that are not scaled, no biases, ReLU and a
/// tied head whose input is scaled. `newer` (T5 1.1): GeGLU and a head of its own.
ModelConfig t5(const EncoderShape& s, bool newer) {
  ModelConfig m = encoder_model(s, Architecture::encoder_decoder);
  m.norm_eps = 1e-6, m.attention_scale = 1;
  m.position = Position::t5_bias;
  m.gated = newer, m.activation = newer ? Activation::gelu_tanh : Activation::relu;
  m.tied_head = !newer;
  if (!newer) m.logit_scale = 1 / std::sqrt(static_cast<double>(s.d_model));
  return m;
}

Preset encoder_preset(const char* name, const char* family, int year, const char* source,
                      const char* shows, ModelConfig model) {
  model.name = name;
  TrainConfig t;
  t.batch = 1, t.steps = 100000, t.lr = 1e-4, t.warmup = 10000;
  return {name, family, year, source, shows, {std::move(model), t}};
}

}  // namespace

std::vector<Preset> encoder_presets() {
  const char* first = "Vaswani et al. 2017, arXiv:1706.03762, table 3, base";
  const char* masked = "Devlin et al. 2018, arXiv:1810.04805; released configurations";
  const char* text = "Raffel et al. 2019, arXiv:1910.10683; released configurations";
  const char* newer = "Raffel et al. 2019; released configuration of T5 1.1 (Shazeer 2020)";
  return {encoder_preset("transformer-base", "Transformer", 2017, first, "L5 L8 L44 L53 L64",
                         transformer_of_2017({6, 512, 8, 2048, 37000})),
          encoder_preset("bert-base", "BERT", 2018, masked, "L10 L43 L53 L64",
                         bert({12, 768, 12, 3072, 30522})),
          encoder_preset("bert-large", "BERT", 2018, masked, "L10 L43 L53 L64",
                         bert({24, 1024, 16, 4096, 30522})),
          encoder_preset("t5-small", "T5", 2019, text, "L25 L43 L53",
                         t5({6, 512, 8, 2048, 32128, 64}, false)),
          encoder_preset("t5-base", "T5", 2019, text, "L25 L43 L53",
                         t5({12, 768, 12, 3072, 32128, 64}, false)),
          encoder_preset("t5-large", "T5", 2019, text, "L25 L43 L53",
                         t5({24, 1024, 16, 4096, 32128, 64}, false)),
          encoder_preset("t5-11b", "T5", 2019, text, "L43 L55 L58",
                         t5({24, 1024, 128, 65536, 32128, 128}, false)),
          encoder_preset("t5-v1.1-base", "T5", 2020, newer, "L33 L43 L54",
                         t5({12, 768, 12, 2048, 32128, 64}, true))};
}

}  // namespace tally
