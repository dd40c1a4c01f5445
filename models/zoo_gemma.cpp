// Gemma and Grok: GeGLU, an embedding times sqrt(d_model), norms on both sides of a branch.
#include <cmath>

#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

const char* const kPrivate = "train.weight_decay train.clip";

ModelConfig gemma_block() {
  ModelConfig m = llama_block(1e-6, 1e4);
  m.norm_gain = NormGain::one_plus_gamma;
  m.activation = Activation::gelu_tanh, m.tied_head = true;
  return m;
}

void scale_embedding(ModelConfig& m) {
  m.embedding_scale = std::sqrt(static_cast<double>(m.d_model));
}

Family gemma1() {
  Family f{"gemma",
           "Gemma",
           2024,
           "Gemma Team 2024, arXiv:2403.08295, table 1; released configurations",
           "L17 L33 L55 L58 L61 L94",
           gemma_block(),
           published(),
           {{"gemma-2b", 18, 2048, 8, 1, 0, 16384, 256000, 8192},
            {"gemma-7b", 28, 3072, 16, 0, 256, 24576, 256000, 8192}}};
  f.finish = scale_embedding;
  f.unpublished = kPrivate;
  return f;
}

Family gemma2() {
  ModelConfig m = gemma_block();
  m.placement = Placement::double_norm, m.window = 4096;
  m.attention_pattern = {"window", "full"};
  m.attention_soft_cap = 50, m.final_soft_cap = 30;
  Family f{"gemma-2",
           "Gemma 2",
           2024,
           "Gemma Team 2024, arXiv:2408.00118, table 1; released configurations",
           "L16 L33 L54 L58 L61 L74 L98",
           m,
           published(),
           {{"gemma-2-2b", 26, 2304, 8, 4, 256, 9216, 256000, 8192},
            {"gemma-2-9b", 42, 3584, 16, 8, 256, 14336, 256000, 8192},
            // Its queries are scaled by d_model / heads, which is not head_dim.
            {"gemma-2-27b", 46, 4608, 32, 16, 128, 36864, 256000, 8192, 0,
             "L16 L33 L55 L58 L61 L74 L98", [](ModelConfig& c) { c.attention_scale = 1.0 / 12; }}}};
  f.finish = scale_embedding;
  f.unpublished = kPrivate;
  return f;
}

void far_by_8(ModelConfig& m) {
  m.window = 1024, m.rope_scaling = RopeScale::linear, m.rope_factor = 8;
}
void far_by_8_and_scaled(ModelConfig& m) {
  far_by_8(m);
  m.attention_scale = 1 / std::sqrt(168.0);  // of d_model / heads
}

Family gemma3() {
  ModelConfig m = gemma_block();
  m.placement = Placement::double_norm, m.qk_norm = QKNorm::head;
  m.window = 512, m.rope_base = 1e6, m.rope_local_base = 1e4;
  m.attention_pattern = {"window", "window", "window", "window", "window", "full"};
  m.position_pattern = {"local", "local", "local", "local", "local", "global"};
  Family f{"gemma-3",
           "Gemma 3",
           2025,
           "Gemma Team 2025, arXiv:2503.19786; released configurations, text part",
           "L16 L33 L51 L55 L58 L59 L61 L72 L98",
           m,
           published(),
           {{"gemma-3-270m", 18, 640, 4, 1, 256, 2048, 262144, 32768},
            {"gemma-3-1b", 26, 1152, 4, 1, 256, 6912, 262144, 32768},
            {"gemma-3-4b", 34, 2560, 8, 4, 256, 10240, 262208, 131072, 0, nullptr, far_by_8},
            {"gemma-3-12b", 48, 3840, 16, 8, 256, 15360, 262208, 131072, 0, nullptr, far_by_8},
            {"gemma-3-27b", 62, 5376, 32, 16, 128, 21504, 262208, 131072, 0, nullptr,
             far_by_8_and_scaled}}};
  f.finish = scale_embedding;
  f.unpublished = kPrivate;
  return f;
}

void global_keys_are_values(ModelConfig& m) {
  m.window = 1024, m.global_kv_heads = 4, m.keys_as_values = true;
}
void on_a_phone(ModelConfig& m) { m.layer_input_dim = 256, m.shared_kv_layers = 18; }
void on_a_small_phone(ModelConfig& m) {
  m.layer_input_dim = 256, m.shared_kv_layers = 20, m.shared_kv_d_ff = 2 * m.d_ff;
  m.attention_pattern = {"window", "window", "window", "window", "full"};
  m.position_pattern = {"local", "local", "local", "local", "global"};
}

/// Layers that see all have wider heads, of which a quarter turns; late layers take the keys and
/// values of earlier ones, and every layer has an embedding of its own.
Family gemma4() {
  ModelConfig m = gemma3().base;
  m.attention = AttentionKind::shared, m.global_head_dim = 512;
  m.norm_gain = NormGain::gamma, m.value_norm = true, m.layer_scale = true;
  m.rope_scaling = RopeScale::proportional, m.rope_fraction = 0.25;
  m.attention_scale = 1, m.final_soft_cap = 30;
  Family f{
      "",
      "Gemma 4",
      2026,
      "google-deepmind/gemma 4.0.1, gm/nn/gemma4; released configurations, text part",
      "L16 L33 L51 L55 L59 L61 L72 L98",
      m,
      published(),
      {{"gemma-4-e2b", 35, 1536, 8, 1, 256, 6144, 262144, 131072, 0, nullptr, on_a_small_phone},
       {"gemma-4-e4b", 42, 2560, 8, 2, 256, 10240, 262144, 131072, 0, nullptr, on_a_phone},
       {"gemma-4-31b", 60, 5376, 32, 16, 256, 21504, 262144, 131072, 0, nullptr,
        global_keys_are_values}}};
  f.finish = scale_embedding;
  f.unpublished = kPrivate;
  return f;
}

/// The same with 128 experts beside the dense layer of every block.
Family gemma4_experts() {
  Family f = gemma4();
  ModelConfig& m = f.base;
  m.window = 1024, m.global_kv_heads = 2, m.keys_as_values = true;
  m.experts = 128, m.experts_per_token = 8, m.expert_d_ff = 704;
  m.dense_branch = m.router_norm = m.router_expert_scale = true;
  f.key = "gemma-4-moe", f.name = "Gemma 4, experts";
  f.sizes = {{"gemma-4-26b-a4b", 30, 2816, 16, 8, 256, 2112, 262144, 131072}};
  return f;
}

Family grok1() {
  ModelConfig m = llama_block(1e-5, 1e4);
  m.placement = Placement::double_norm, m.activation = Activation::gelu_tanh, m.tied_head = true;
  m.attention_soft_cap = 30, m.logit_scale = 0.5773502691896257;
  m.experts = 8, m.experts_per_token = 2, m.router_renormalise = false;
  Family f{"grok-1",
           "Grok",
           2024,
           "xai-org/grok-1, run.py and model.py",
           "L16 L33 L74 L95",
           m,
           published(),
           {{"grok-1", 64, 6144, 48, 8, 0, 32768, 131072, 8192}}};
  f.finish = scale_embedding;
  f.unpublished = kPrivate;
  return f;
}

}  // namespace

std::vector<Family> gemma_families() {
  return {gemma1(), gemma2(), gemma3(), gemma4(), gemma4_experts(), grok1()};
}

}  // namespace tally::zoo
