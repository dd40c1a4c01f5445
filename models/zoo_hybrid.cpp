// Layers with a recurrence between those of attention: Qwen3.5, Qwen3-Next, Jamba.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

/// Three gated delta nets, then attention with a gate, of which a quarter of each head turns.
ModelConfig qwen_hybrid_block() {
  ModelConfig m = llama_block(1e-6, 1e7);
  m.norm_gain = NormGain::one_plus_gamma;
  m.qk_norm = QKNorm::head, m.attention_gate = true, m.rope_fraction = 0.25;
  m.mixer_pattern = {"delta", "delta", "delta", "attention"};
  m.delta_key_heads = 16, m.delta_value_heads = 32;
  m.delta_key_dim = m.delta_value_dim = 128;
  return m;
}

void smallest(ModelConfig& m) { m.delta_value_heads = 16, m.tied_head = true; }
void largest(ModelConfig& m) { m.delta_value_heads = 48; }

Family qwen35() {
  Family f{
      "qwen3.5",
      "Qwen3.5",
      2026,
      "released configurations; Yang et al. 2024, arXiv:2412.06464 (gated delta net), Qiu et al. "
      "2025, arXiv:2505.06708 (gate)",
      "L51 L58 L61 L72 L90 L95 L98",
      qwen_hybrid_block(),
      published(),
      {{"qwen3.5-0.8b", 24, 1024, 8, 2, 256, 3584, 248320, 262144, 0, nullptr, smallest},
       {"qwen3.5-4b", 32, 2560, 16, 4, 256, 9216, 248320, 262144, 0, nullptr, tied},
       {"qwen3.5-9b", 32, 4096, 16, 4, 256, 12288, 248320, 262144},
       {"qwen3.5-27b", 64, 5120, 24, 4, 256, 17408, 248320, 262144, 0, nullptr, largest}}};
  f.note = "the text model alone: neither its eyes nor the head that predicts a second token";
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

Family qwen3_next() {
  ModelConfig m = qwen_hybrid_block();
  m.experts = 512, m.experts_per_token = 10, m.expert_d_ff = 512;
  m.shared_experts = 1, m.shared_expert_d_ff = 512, m.shared_expert_gate = true;
  Family f{"",
           "Qwen3-Next",
           2025,
           "released configuration; Yang et al. 2024, arXiv:2412.06464 (gated delta net)",
           "L51 L72 L90 L95 L98",
           m,
           published(),
           {{"qwen3-next-80b", 48, 2048, 16, 2, 256, 5120, 151936, 262144}}};
  f.note = "the head that predicts a second token is not here";
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

/// One layer in eight attends, without positions; every second one has experts.
Family jamba() {
  ModelConfig m = llama_block(1e-6, 1e4);
  m.position = Position::none;
  m.mixer_pattern = {"mamba", "mamba", "mamba", "mamba", "attention", "mamba", "mamba", "mamba"};
  m.mamba_inner = 8192, m.mamba_state = 16, m.mamba_dt_rank = 256, m.mamba_norms = true;
  m.experts = 16, m.first_expert_layer = 1, m.expert_layer_every = 2;
  m.router_renormalise = false;
  Family f{"jamba",
           "Jamba",
           2024,
           "Lieber et al. 2024, arXiv:2403.19887; released configuration",
           "L43 L90 L95 L98",
           m,
           published(),
           {{"jamba-v0.1", 32, 4096, 32, 8, 0, 14336, 65536, 262144}}};
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

}  // namespace

std::vector<Family> hybrid_families() { return {qwen35(), qwen3_next(), jamba()}; }

}  // namespace tally::zoo
