// Latent attention: DeepSeek-V2 and V3.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

/// Rotary positions stretched by YaRN from 4096 tokens, experts from the second
/// layer on.
ModelConfig latent_block() {
  ModelConfig m = llama_block(1e-6, 1e4);
  m.attention = AttentionKind::latent, m.kv_lora_rank = 512;
  m.qk_nope_head_dim = 128, m.qk_rope_head_dim = 64, m.v_head_dim = 128;
  m.rope_layout = RopeLayout::interleaved, m.rope_scaling = RopeScale::yarn;
  m.rope_factor = 40, m.rope_original_context = 4096;
  m.rope_mscale = m.rope_mscale_all_dim = 0.707;
  m.experts_per_token = 6, m.shared_experts = 2, m.first_expert_layer = 1;
  m.router_renormalise = false;
  m.init_std = 0.006;
  return m;
}

void large(ModelConfig& m) {
  m.q_lora_rank = 1536;
  m.experts = 160, m.expert_d_ff = 1536, m.router_scale = 16;
  m.router_groups = 8, m.router_kept_groups = 3;
}
void lite(ModelConfig& m) { m.experts = 64, m.expert_d_ff = 1408; }

/// Experts are chosen by a sigmoid and a bias that is not learned by gradients.
Family deepseek_v3() {
  ModelConfig m = latent_block();
  m.rope_mscale = m.rope_mscale_all_dim = 1;
  m.q_lora_rank = 1536;
  m.experts = 256, m.expert_d_ff = 2048, m.experts_per_token = 8, m.shared_experts = 1;
  m.first_expert_layer = 3;
  m.router = Router::sigmoid, m.router_selection_bias = true, m.router_bias_rate = 1e-3;
  m.router_renormalise = true, m.router_scale = 2.5;
  m.router_groups = 8, m.router_kept_groups = 4, m.router_best_of_group = 2;
  Family f{"",
           "DeepSeek-V3",
           2024,
           "DeepSeek-AI 2024, arXiv:2412.19437, sec. 4.2; deepseek-ai/DeepSeek-V3, "
           "inference/configs",
           "L52 L54 L96",
           m,
           published(),
           {{"deepseek-v3", 61, 7168, 128, 0, 0, 18432, 129280, 163840, 2.2e-4}}};
  f.note =
      "the head that predicts a second token and the load-balance loss by sequence are not here";
  return f;
}

}  // namespace

std::vector<Family> latent_families() {
  Family f{"",
           "DeepSeek-V2",
           2024,
           "DeepSeek-AI 2024, arXiv:2405.04434, sec. 3.1 and appendix B; "
           "released configurations",
           "L52 L54 L96",
           latent_block(),
           published(),
           {{"deepseek-v2-lite", 27, 2048, 16, 0, 0, 10944, 102400, 163840, 4.2e-4, nullptr, lite},
            {"deepseek-v2", 60, 5120, 128, 0, 0, 12288, 102400, 163840, 2.4e-4, nullptr, large}}};
  f.note = "its load-balance losses by device and by sequence are not here";
  return {f, deepseek_v3()};
}

}  // namespace tally::zoo
