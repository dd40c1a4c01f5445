// Norms behind the branches, norms without gains, losses and norms against drifting logits.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

Family olmo1() {
  ModelConfig m = llama_block(1e-5, 1e4);
  use_layer_norm(m, false);
  m.norm_gain = NormGain::none, m.init = Init::mitchell;
  return {"olmo",
          "OLMo",
          2024,
          "Groeneveld et al. 2024, arXiv:2402.00838; allenai/OLMo, configs/official-0724",
          "L17 L18 L25 L54",
          m,
          published(),
          {{"olmo-1b", 16, 2048, 16, 0, 0, 8192, 50304, 2048, 4e-4, "L17 L18 L25 L55", tied},
           {"olmo-7b", 32, 4096, 32, 0, 0, 11008, 50304, 2048, 3e-4}}};
}

ModelConfig olmo2_block() {
  ModelConfig m = llama_block(1e-6, 5e5);
  m.placement = Placement::output, m.qk_norm = QKNorm::full, m.z_loss = 1e-5;
  m.init = Init::trunc_normal;
  return m;
}

Family olmo2() {
  Family f{"olmo-2",
           "OLMo 2",
           2024,
           "OLMo Team 2025, arXiv:2501.00656; allenai/OLMo, configs/official-1124",
           "L16 L35 L54 L67 L71 L72",
           olmo2_block(),
           published(),
           {{"olmo-2-1b", 16, 2048, 16, 0, 0, 8192, 100352, 4096, 4e-4},
            {"olmo-2-7b", 32, 4096, 32, 0, 0, 11008, 100352, 4096, 3e-4},
            {"olmo-2-13b", 40, 5120, 40, 0, 0, 13824, 100352, 4096, 3e-4},
            {"olmo-2-32b", 64, 5120, 40, 8, 0, 27648, 100352, 4096, 6e-4}}};
  f.note = "norms decayed too; not here";
  return f;
}

Family olmo3() {
  ModelConfig m = olmo2_block();
  m.window = 4096, m.attention_pattern = {"window", "window", "window", "full"};
  Family f{"olmo-3",
           "OLMo 3",
           2025,
           "OLMo Team 2025; allenai/OLMo-core, scripts/official/OLMo3",
           "L16 L51 L54 L67 L71 L72 L98",
           m,
           published(),
           {{"olmo-3-7b", 32, 4096, 32, 0, 0, 11008, 100352, 8192, 3e-4},
            {"olmo-3-32b", 64, 5120, 40, 8, 0, 27648, 100352, 8192, 6e-4}}};
  f.note = "as pre-trained, before YaRN stretched its full layers to 65,536 tokens";
  return f;
}

Family dclm() {
  ModelConfig m = llama_block(1e-5, 1e4);
  use_layer_norm(m, false);
  m.qk_norm = QKNorm::full, m.z_loss = 5e-6;
  TrainConfig t = published(0.05);
  t.warmup = 5000, t.final_lr_fraction = 0.015;
  return {"dclm",
          "DCLM",
          2024,
          "Li et al. 2024, arXiv:2406.11794; mlfoundations/dclm, training/configs",
          "L18 L71 L72",
          m,
          t,
          {{"dclm-7b", 32, 4096, 32, 0, 0, 11008, 50432, 2048, 2e-3}}};
}

Family nemotron() {
  ModelConfig m = llama_block(1e-5, 1e4);
  use_layer_norm(m, true);
  m.norm_gain = NormGain::one_plus_gamma;
  m.gated = false, m.activation = Activation::squared_relu, m.rope_fraction = 0.5;
  m.init_std = 0.0063;
  TrainConfig t = published();
  t.warmup = 500;
  Family f{"nemotron-4",
           "Nemotron",
           2024,
           "Adler et al. 2024, arXiv:2406.11704, table 1; NeMo, recipes/nemotron4_340b.py",
           "L18 L37 L51 L61 L95",
           m,
           t,
           {{"nemotron-4-340b", 96, 18432, 96, 8, 0, 0, 256000, 4096, 1e-4}}};
  f.unpublished = "train.weight_decay";
  return f;
}

Family phi3_small() {
  ModelConfig m = llama_block(1e-5, 1e6);
  use_layer_norm(m, true);
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = m.tied_head = true;
  m.activation = Activation::swish, m.activation_parameter = 1.702;
  m.gate_limit = 20, m.gate_offset = 1;
  m.embedding_dropout = m.residual_dropout = 0.1;
  m.embedding_scale = 10, m.logit_scale = 0.125;
  Family f{"phi-3-small",
           "Phi-3 small",
           2024,
           "Abdin et al. 2024, arXiv:2404.14219; configuration_phi3_small.py",
           "L18 L30 L33 L64 L85 L95",
           m,
           published(),
           {{"phi-3-small", 32, 4096, 32, 8, 0, 14336, 100352, 8192}}};
  f.finish = [](ModelConfig& c) {
    const int64_t wide = c.head_dim > 0 ? c.head_dim : c.d_model / c.heads;
    c.attention_scale = 1 / static_cast<double>(wide);  // muP's
  };
  f.note = "every second layer is block-sparse; all see everything here";
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

}  // namespace

std::vector<Family> stable_families() {
  return {olmo1(), olmo2(), olmo3(), dclm(), nemotron(), phi3_small()};
}

}  // namespace tally::zoo
