// Decoders whose attention and feed-forward layer read the same stream (L38 to L41).
#include <cmath>

#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

Family gpt_j() {
  ModelConfig m = gpt_block();
  m.position = Position::rope, m.rope_layout = RopeLayout::interleaved, m.rope_fraction = 0.25;
  m.parallel = Parallel::shared_norm;
  m.qkv_bias = m.attention_output_bias = m.tied_head = false;
  m.head_bias = true;
  TrainConfig t = published();
  t.warmup = 3000;
  return {"gpt-j",
          "GPT-J",
          2021,
          "Wang and Komatsuzaki 2021; released configuration",
          "L18 L38 L41 L43 L48 L51",
          m,
          t,
          {{"gpt-j-6b", 28, 4096, 16, 0, 0, 0, 50400, 2048, 1.2e-4}}};
}

Family gpt_neox() {
  ModelConfig m = gpt_block();
  m.activation = Activation::gelu, m.tied_head = false;
  m.position = Position::rope, m.rope_fraction = 0.25, m.parallel = Parallel::two_norms;
  return {"gpt-neox",
          "GPT-NeoX",
          2022,
          "Black et al. 2022, arXiv:2204.06745; EleutherAI/gpt-neox, configs/20B.yml",
          "L30 L38 L41 L43 L51",
          m,
          published(0.01),
          {{"gpt-neox-20b", 44, 6144, 64, 0, 0, 0, 50432, 2048, 9.7e-5}}};
}

Family palm() {
  ModelConfig m = llama_block(1e-6, 1e4);
  m.parallel = Parallel::shared_norm, m.tied_head = true, m.z_loss = 1e-4;
  Family f{"palm",
           "PaLM",
           2022,
           "Chowdhery et al. 2022, arXiv:2204.02311, table 1",
           "L18 L33 L38 L40 L41 L54 L58 L59 L61 L71 L94",
           m,
           published(0),
           {{"palm-540b", 118, 18432, 48, 1, 256, 73728, 256000, 2048}}};
  f.finish = [](ModelConfig& c) { c.logit_scale = 1 / std::sqrt(static_cast<double>(c.d_model)); };
  f.note =
      "RMSNorm as in its code (the paper says LayerNorm without bias); weight decay was the square "
      "of the rate, 0 here; Adafactor's rate is not AdamW's";
  return f;
}

Family falcon() {
  ModelConfig m = gpt_block();
  m.activation = Activation::gelu, m.position = Position::rope;
  m.parallel = Parallel::shared_norm, m.z_loss = 1e-4;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = false;
  return {"falcon",
          "Falcon",
          2023,
          "Almazrouei et al. 2023, arXiv:2311.16867; released configurations, model cards",
          "L18 L41 L71 L94",
          m,
          published(),
          {{"falcon-7b", 32, 4544, 71, 1, 0, 0, 65024, 2048, 6e-4},
           {"falcon-40b", 60, 8192, 128, 8, 0, 0, 65024, 2048, 1.85e-4, "L18 L38 L41 L71 L95",
            [](ModelConfig& c) { c.parallel = Parallel::two_norms; }},
           {"falcon-2-11b", 60, 4096, 32, 8, 0, 0, 65024, 8192, 3.7e-4, "L18 L41 L71 L95",
            [](ModelConfig& c) { c.rope_base = 500042, c.tied_head = false; }}}};
}

/// LayerNorm with a gain alone, SwiGLU, one norm for both branches, a tied head that is scaled.
ModelConfig command_block(double base) {
  ModelConfig m = llama_block(1e-5, base);
  use_layer_norm(m, false);
  m.parallel = Parallel::shared_norm, m.tied_head = true;
  m.rope_layout = RopeLayout::interleaved;
  return m;
}

void command_r(ModelConfig& m) { m.logit_scale = 0.0625; }
void command_r_plus(ModelConfig& m) {
  m.rope_base = 7.5e7, m.logit_scale = 0.8333, m.qk_norm = QKNorm::heads;
}

Family command() {
  Family f{"command-r",
           "Command R",
           2024,
           "CohereForAI/c4ai-command-r, released configurations; rotary bases recalled",
           "L18 L33 L38 L41 L49",
           command_block(8e6),
           published(),
           {{"command-r-35b", 40, 8192, 64, 0, 0, 22528, 256000, 131072, 0, nullptr, command_r},
            {"command-r-plus-104b", 64, 12288, 96, 8, 0, 33792, 256000, 131072, 0,
             "L18 L38 L41 L72 L95", command_r_plus}}};
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

Family command_a() {
  ModelConfig m = command_block(5e4);
  m.logit_scale = 0.25, m.window = 4096;
  m.attention_pattern = {"window", "window", "window", "full"};
  m.position_pattern = {"global", "global", "global", "none"};
  Family f{"command-a",
           "Command A",
           2025,
           "Cohere 2025, arXiv:2504.00698; released configuration, dimensions recalled",
           "L18 L38 L41 L90 L98",
           m,
           published(),
           {{"command-a-111b", 64, 12288, 96, 8, 0, 36864, 256000, 262144}}};
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

}  // namespace

std::vector<Family> parallel_families() {
  return {gpt_j(), gpt_neox(), palm(), falcon(), command(), command_a()};
}

}  // namespace tally::zoo
