// The rows of the zoo that are no decoders.
#include <cmath>

#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

ModelConfig encoder_block(Architecture architecture) {
  ModelConfig m;
  m.architecture = architecture;
  m.gated = m.fused_qkv = m.fused_gate_up = false;
  m.padding_id = 0;
  return m;
}

/// Post-norm LayerNorm with biases everywhere: the layers of 2017 and of BERT.
void make_post_norm(ModelConfig& m) {
  m.norm = Norm::layer_norm, m.norm_bias = true, m.placement = Placement::post;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = m.tied_head = true;
  m.embedding_dropout = m.residual_dropout = 0.1;
}

/// Vaswani et al. 2017, sec. 3 and 5.4: the table times sqrt(d_model), sinusoids, ReLU.
Family transformer() {
  ModelConfig m = encoder_block(Architecture::encoder_decoder);
  make_post_norm(m);
  m.activation = Activation::relu, m.position = Position::sinusoidal, m.label_smoothing = 0.1;
  TrainConfig t = published(0);
  t.warmup = 4000, t.beta2 = 0.98, t.eps = 1e-9, t.clip = 0;
  Family f{"transformer",
           "Transformer",
           2017,
           "Vaswani et al. 2017, arXiv:1706.03762, table 3; fairseq, transformer_legacy.py",
           "L5 L8 L44 L53 L64",
           m,
           t,
           {{"transformer-base", 6, 512, 8, 0, 0, 2048, 37000, 512, 7e-4},
            {"transformer-big", 6, 1024, 16, 0, 0, 4096, 37000, 512, 5e-4, nullptr,
             [](ModelConfig& c) { c.embedding_dropout = c.residual_dropout = 0.3; }}}};
  f.finish = [](ModelConfig& c) {
    c.embedding_scale = std::sqrt(static_cast<double>(c.d_model));
    c.init_std = 1 / c.embedding_scale;
  };
  f.note =
      "attention has the biases of fairseq's code; the rate rose and fell as 1 / sqrt(step), "
      "cosine "
      "from its peak here";
  f.unpublished = "model.norm_eps model.context";
  return f;
}

/// Devlin et al. 2018, sec. 3: learned positions, two kinds of segments, GELU, a head of its own.
Family bert() {
  ModelConfig m = encoder_block(Architecture::encoder);
  make_post_norm(m);
  m.norm_eps = 1e-12, m.embedding_norm = m.head_bias = true;
  m.activation = Activation::gelu, m.position = Position::learned, m.segment_types = 2;
  m.attention_dropout = 0.1;
  m.init = Init::trunc_normal;
  TrainConfig t = published(0.01);
  t.warmup = 10000, t.beta2 = 0.999, t.eps = 1e-6, t.final_lr_fraction = 0;
  Family f{"bert",
           "BERT",
           2018,
           "Devlin et al. 2018, arXiv:1810.04805; released configurations",
           "L10 L43 L53 L64",
           m,
           t,
           {{"bert-base", 12, 768, 12, 0, 0, 3072, 30522, 512, 1e-4},
            {"bert-large", 24, 1024, 16, 0, 0, 4096, 30522, 512, 1e-4}}};
  f.note = "with the head of the masked words, without the pooler of the sentence pairs";
  return f;
}

/// Raffel et al. 2019, sec. 2.1: relative biases, scores that are not scaled, no biases.
ModelConfig t5_block() {
  ModelConfig m = encoder_block(Architecture::encoder_decoder);
  m.norm_eps = 1e-6, m.attention_scale = 1, m.position = Position::t5_bias;
  m.padding_id = -1, m.z_loss = 1e-4;  // its padding's row is trained as the others
  return m;
}

TrainConfig t5_run() {
  TrainConfig t = published(0);
  t.warmup = 10000;
  return t;
}

/// ReLU, and a tied head whose input is scaled.
Family t5() {
  ModelConfig m = t5_block();
  m.activation = Activation::relu, m.tied_head = true;
  use_dropout(m, 0.1);
  Family f{"t5",
           "T5",
           2019,
           "Raffel et al. 2019, arXiv:1910.10683; released configurations",
           "L18 L25 L30 L43 L53 L64 L71",
           m,
           t5_run(),
           {{"t5-small", 6, 512, 8, 0, 64, 2048, 32128, 512},
            {"t5-base", 12, 768, 12, 0, 64, 3072, 32128, 512},
            {"t5-large", 24, 1024, 16, 0, 64, 4096, 32128, 512},
            {"t5-3b", 24, 1024, 32, 0, 128, 16384, 32128, 512, 0, "L25 L43 L55 L58"},
            {"t5-11b", 24, 1024, 128, 0, 128, 65536, 32128, 512, 0, "L25 L43 L55 L58 L59"}}};
  f.finish = [](ModelConfig& c) { c.logit_scale = 1 / std::sqrt(static_cast<double>(c.d_model)); };
  f.note = "Adafactor's rate, 1 / sqrt(step), is not AdamW's";
  return f;
}

/// GeGLU, a head of its own, no dropout in pre-training.
ModelConfig newer_t5_block() {
  ModelConfig m = t5_block();
  m.gated = true, m.activation = Activation::gelu_tanh;
  return m;
}

Family t5_newer() {
  return {"t5-v1.1",
          "T5 v1.1",
          2020,
          "Raffel et al. 2019; released configurations of T5 1.1 (Shazeer 2020)",
          "L33 L43 L54",
          newer_t5_block(),
          t5_run(),
          {{"t5-v1.1-small", 8, 512, 6, 0, 64, 1024, 32128, 512},
           {"t5-v1.1-base", 12, 768, 12, 0, 64, 2048, 32128, 512},
           {"t5-v1.1-large", 24, 1024, 16, 0, 64, 2816, 32128, 512},
           {"t5-v1.1-xl", 24, 2048, 32, 0, 64, 5120, 32128, 512},
           {"t5-v1.1-xxl", 24, 4096, 64, 0, 64, 10240, 32128, 512, 0, "L33 L43 L54 L55 L59"}}};
}

Family mt5() {
  return {"",
          "mT5",
          2020,
          "Xue et al. 2020, arXiv:2010.11934; released configurations",
          "L33 L43 L61 L62",
          newer_t5_block(),
          t5_run(),
          {{"mt5-small", 8, 512, 6, 0, 64, 1024, 250112, 1024},
           {"mt5-base", 12, 768, 12, 0, 64, 2048, 250112, 1024},
           {"mt5-large", 24, 1024, 16, 0, 64, 2816, 250112, 1024},
           {"mt5-xl", 24, 2048, 32, 0, 64, 5120, 250112, 1024},
           {"mt5-xxl", 24, 4096, 64, 0, 64, 10240, 250112, 1024}}};
}

}  // namespace

std::vector<Family> encoder_families() { return {transformer(), bert(), t5(), t5_newer(), mt5()}; }

}  // namespace tally::zoo
