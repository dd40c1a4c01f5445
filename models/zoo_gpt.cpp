// Decoders with absolute or relative positions, attention before the feed-forward layer.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

Family gpt1() {
  ModelConfig m = gpt_block();
  use_dropout(m, 0.1);
  m.placement = Placement::post, m.init = Init::normal;
  TrainConfig t = published(0.01);
  t.beta2 = 0.999, t.final_lr_fraction = 0;
  return {"gpt1",
          "GPT",
          2018,
          "Radford et al. 2018; released configuration",
          "L10 L18 L30 L43 L53 L64",
          m,
          t,
          {{"gpt1", 12, 768, 12, 0, 0, 0, 40478, 512, 2.5e-4}}};
}

Family gpt2() {
  ModelConfig m = gpt_block();
  use_dropout(m, 0.1);
  Family f{"",
           "GPT-2",
           2019,
           "Radford et al. 2019; released configurations (the paper prints 117M to 1542M)",
           "L18 L43 L53 L64",
           m,
           published(),
           {{"gpt2", 12, 768, 12, 0, 0, 0, 50257, 1024, 0, "L18 L43 L53 L57 L61 L64"},
            {"gpt2-medium", 24, 1024, 16, 0, 0, 0, 50257, 1024},
            {"gpt2-large", 36, 1280, 20, 0, 0, 0, 50257, 1024},
            {"gpt2-xl", 48, 1600, 25, 0, 0, 0, 50257, 1024, 0, "L18 L43 L53 L59 L64"}}};
  f.note = "weight decay 0.1 is the lecture's figure; the paper gives none";
  f.unpublished = "train.clip";
  return f;
}

Family gpt3() {
  ModelConfig m = gpt_block();
  use_dropout(m, 0.1);
  Family f{"gpt3",
           "GPT-3",
           2020,
           "Brown et al. 2020, arXiv:2005.14165, table 2.1",
           "L18 L37 L43 L53 L57",
           m,
           published(),
           {{"gpt3-125m", 12, 768, 12, 0, 0, 0, 50257, 2048, 6e-4},
            {"gpt3-350m", 24, 1024, 16, 0, 0, 0, 50257, 2048, 3e-4},
            {"gpt3-760m", 24, 1536, 16, 0, 0, 0, 50257, 2048, 2.5e-4},
            {"gpt3-1.3b", 24, 2048, 32, 0, 0, 0, 50257, 2048, 2e-4},
            {"gpt3-2.7b", 32, 2560, 32, 0, 0, 0, 50257, 2048, 1.6e-4},
            {"gpt3-6.7b", 32, 4096, 32, 0, 0, 0, 50257, 2048, 1.2e-4},
            {"gpt3-13b", 40, 5140, 40, 0, 128, 0, 50257, 2048, 1e-4},
            {"gpt3-175b", 96, 12288, 96, 0, 0, 0, 50257, 2048, 6e-5,
             "L18 L37 L43 L53 L57 L59 L61 L62 L97"}}};
  f.sizes[3].note = "the paper prints 24 heads of 128, which are not d_model wide; OPT's 32 of 64";
  f.note =
      "every second layer sees a band whose width is not published: all are full here; dropout is "
      "the lecture's figure";
  return f;
}

void opt_350m(ModelConfig& m) { m.placement = Placement::post, m.embedding_dim = 512; }

Family opt() {
  ModelConfig m = gpt_block();
  m.activation = Activation::relu, m.position_offset = 2;
  m.attention_dropout = m.residual_dropout = 0.1;
  TrainConfig t = published();
  return {"opt",
          "OPT",
          2022,
          "Zhang et al. 2022, arXiv:2205.01068, table 1; released configurations",
          "L18 L30 L43 L53 L64",
          m,
          t,
          {{"opt-125m", 12, 768, 12, 0, 0, 0, 50272, 2048, 6e-4},
           {"opt-350m", 24, 1024, 16, 0, 0, 0, 50272, 2048, 3e-4, "L10 L18 L30 L43", opt_350m},
           {"opt-1.3b", 24, 2048, 32, 0, 0, 0, 50272, 2048, 2e-4},
           {"opt-2.7b", 32, 2560, 32, 0, 0, 0, 50272, 2048, 1.6e-4},
           {"opt-6.7b", 32, 4096, 32, 0, 0, 0, 50272, 2048, 1.2e-4},
           {"opt-13b", 40, 5120, 40, 0, 0, 0, 50272, 2048, 1e-4},
           {"opt-30b", 48, 7168, 56, 0, 0, 0, 50272, 2048, 1e-4},
           {"opt-66b", 64, 9216, 72, 0, 0, 0, 50272, 2048, 8e-5},
           {"opt-175b", 96, 12288, 96, 0, 0, 0, 50272, 2048, 1.2e-4, "L30 L53 L59"}}};
}

Family bloom() {
  ModelConfig m = gpt_block();
  m.position = Position::alibi, m.embedding_norm = true;
  m.init = Init::normal, m.init_std = 0.0048;
  return {"bloom",
          "BLOOM",
          2022,
          "BigScience 2022, arXiv:2211.05100; bigscience/train/tr11-176B-ml",
          "L18 L30 L43 L45 L59 L61 L62",
          m,
          published(),
          {{"bloom-176b", 70, 14336, 112, 0, 0, 0, 250880, 2048, 6e-5}}};
}

Family lamda() {
  ModelConfig m = llama_block(1e-6, 1e4);
  m.position = Position::t5_bias, m.activation = Activation::gelu_tanh, m.tied_head = true;
  Family f{"lamda",       "LaMDA",
           2021,          "Thoppilan et al. 2022, arXiv:2201.08239",
           "L33 L43 L58", m,
           published(),   {{"lamda-137b", 64, 8192, 128, 0, 128, 65536, 32000, 2048}}};
  f.note = "norm, context and training are not published; T5's norm here";
  f.unpublished =
      "model.norm model.norm_eps model.context model.residual_dropout model.z_loss "
      "train.weight_decay train.clip";
  return f;
}

/// Transformer-XL's relative positions, RMSNorm, ReLU without a gate.
ModelConfig gopher_block() {
  ModelConfig m = llama_block(1e-5, 1e4);
  m.position = Position::xl_relative, m.sinusoid_layout = SinusoidLayout::halves;
  m.gated = false, m.activation = Activation::relu, m.tied_head = true;
  return m;
}
constexpr const char* kGopherUnknown =
    "model.norm_eps model.residual_dropout model.z_loss train.weight_decay";

Family gopher() {
  TrainConfig t = published();
  t.clip = 0.25, t.warmup = 1500;
  Family f{"gopher",
           "Gopher",
           2021,
           "Rae et al. 2021, arXiv:2112.11446, table 1",
           "L30 L43 L53 L59",
           gopher_block(),
           t,
           {{"gopher-280b", 80, 16384, 128, 0, 0, 0, 32000, 2048, 4e-5}}};
  f.note = "ReLU as the lecture lists it; the paper does not name its activation";
  f.unpublished = kGopherUnknown;
  return f;
}

Family chinchilla() {
  Family f{"",
           "Chinchilla",
           2022,
           "Hoffmann et al. 2022, arXiv:2203.15556, table 4",
           "L18 L30 L43 L53 L59 L77",
           gopher_block(),
           published(),
           {{"chinchilla-70b", 80, 8192, 64, 0, 0, 0, 32000, 2048, 1e-4}}};
  f.unpublished = kGopherUnknown;
  return f;
}

}  // namespace

std::vector<Family> gpt_families() {
  return {gpt1(), gpt2(), gpt3(), opt(), bloom(), lamda(), gopher(), chinchilla()};
}

}  // namespace tally::zoo
