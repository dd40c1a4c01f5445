// LLaMA's block, under its own and other names.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

Family llama1() {
  return {"",
          "LLaMA",
          2023,
          "Touvron et al. 2023, arXiv:2302.13971, table 2; released configurations",
          "L54 L59",
          llama_block(1e-6, 1e4),
          published(),
          {{"llama-7b", 32, 4096, 32, 0, 0, 11008, 32000, 2048, 3e-4, "L6 L18 L48 L54 L62 L81"},
           {"llama-13b", 40, 5120, 40, 0, 0, 13824, 32000, 2048, 3e-4},
           {"llama-33b", 60, 6656, 52, 0, 0, 17920, 32000, 2048, 1.5e-4},
           {"llama-65b", 80, 8192, 64, 0, 0, 22016, 32000, 2048, 1.5e-4}}};
}

Family llama2() {
  return {"",
          "LLaMA 2",
          2023,
          "Touvron et al. 2023, arXiv:2307.09288, table 1; released configurations",
          "L54 L62",
          llama_block(1e-5, 1e4),
          published(),
          {{"llama-2-7b", 32, 4096, 32, 0, 0, 11008, 32000, 4096, 3e-4},
           {"llama-2-13b", 40, 5120, 40, 0, 0, 13824, 32000, 4096, 3e-4},
           {"llama-2-70b", 80, 8192, 64, 8, 0, 28672, 32000, 4096, 1.5e-4, "L54 L57 L95"}}};
}

/// 3.1 and 3.2 stretch the rotary frequencies behind the pre-training on 8192 tokens.
template <int factor>
void stretched(ModelConfig& m) {
  m.rope_scaling = RopeScale::llama3, m.rope_factor = factor, m.rope_original_context = 8192;
}
void stretched_and_tied(ModelConfig& m) {
  stretched<32>(m);
  m.tied_head = true;
}

Family llama3() {
  TrainConfig t = published();
  t.final_lr_fraction = 0.01;
  const char *three = "L51 L54 L61 L95", *later = "L51 L52 L54 L61 L95";
  return {
      "llama-3",
      "Llama 3",
      2024,
      "Dubey et al. 2024, arXiv:2407.21783, table 3; released configurations",
      three,
      llama_block(1e-5, 5e5),
      t,
      {{"llama-3-8b", 32, 4096, 32, 8, 0, 14336, 128256, 8192, 3e-4},
       {"llama-3-70b", 80, 8192, 64, 8, 0, 28672, 128256, 8192, 1.5e-4, "L51 L54 L59 L95"},
       {"llama-3.1-8b", 32, 4096, 32, 8, 0, 14336, 128256, 131072, 3e-4, later, stretched<8>},
       {"llama-3.1-70b", 80, 8192, 64, 8, 0, 28672, 128256, 131072, 1.5e-4, later, stretched<8>},
       {"llama-3.1-405b", 126, 16384, 128, 8, 0, 53248, 128256, 131072, 8e-5, "L52 L54 L59 L95",
        stretched<8>},
       {"llama-3.2-1b", 16, 2048, 32, 8, 0, 8192, 128256, 131072, 0, later, stretched_and_tied},
       {"llama-3.2-3b", 28, 3072, 24, 8, 0, 8192, 128256, 131072, 0, later, stretched_and_tied}}};
}

Family mistral() {
  ModelConfig m = llama_block(1e-5, 1e4);
  m.window = 4096;
  Family f{"mistral",
           "Mistral",
           2023,
           "Jiang et al. 2023, arXiv:2310.06825; released configuration of v0.1",
           "L33 L54 L90 L95 L97",
           m,
           published(),
           {{"mistral-7b", 32, 4096, 32, 8, 0, 14336, 32000, 8192}}};
  f.note = "training is not published; weight decay 0.1 is the lecture's figure";
  f.unpublished = "train.clip";
  return f;
}

Family deepseek_llm() {
  Family f{"",
           "DeepSeek LLM",
           2024,
           "DeepSeek-AI 2024, arXiv:2401.02954, table 2",
           "L54 L61",
           llama_block(1e-6, 1e4),
           published(),
           {{"deepseek-llm-7b", 30, 4096, 32, 0, 0, 11008, 102400, 4096, 4.2e-4},
            {"deepseek-llm-67b", 95, 8192, 64, 8, 0, 22016, 102400, 4096, 3.2e-4, "L54 L59 L95"}}};
  f.note = "the rate fell in steps, to 31.6 % and 10 %; cosine here";
  return f;
}

Family yi() {
  Family f{"",
           "Yi",
           2024,
           "01.AI 2024, arXiv:2403.04652, table 1",
           "L51 L54 L61 L95",
           llama_block(1e-5, 5e6),
           published(),
           {{"yi-6b", 32, 4096, 32, 4, 0, 11008, 64000, 4096},
            {"yi-34b", 60, 7168, 56, 8, 0, 20480, 64000, 4096}}};
  f.note = "weight decay 0.1 is the lecture's figure";
  f.unpublished = "train.clip";
  return f;
}

Family baichuan2() {
  ModelConfig m = llama_block(1e-6, 1e4);
  m.fix_norm = FixNorm::head, m.max_z_loss = 2e-4;
  TrainConfig t = published();
  t.clip = 0.5;
  Family f{"baichuan-2",
           "Baichuan 2",
           2023,
           "Yang et al. 2023, arXiv:2309.10305; NeMo and Megatron configurations",
           "L35 L43 L61 L71",
           m,
           t,
           {{"baichuan-2-7b", 32, 4096, 32, 0, 0, 11008, 125696, 4096, 2e-4},
            {"baichuan-2-13b", 40, 5120, 40, 0, 0, 13696, 125696, 4096, 1.5e-4, nullptr,
             [](ModelConfig& c) { c.position = Position::alibi; }}}};
  return f;
}

Family falcon3() {
  Family f{"",
           "Falcon 3",
           2024,
           "Technology Innovation Institute 2024; released configurations",
           "L54 L59 L61 L95",
           llama_block(1e-6, 1000042),
           published(),
           {{"falcon3-1b", 18, 2048, 8, 4, 0, 8192, 131072, 4096},
            {"falcon3-3b", 22, 3072, 12, 4, 0, 9216, 131072, 32768},
            {"falcon3-7b", 28, 3072, 12, 4, 0, 23040, 131072, 32768},
            {"falcon3-10b", 40, 3072, 12, 4, 0, 23040, 131072, 32768}}};
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

Family phi3() {
  Family f{"",
           "Phi-3",
           2024,
           "Abdin et al. 2024, arXiv:2404.14219; released configurations",
           "L33 L54",
           llama_block(1e-5, 1e4),
           published(),
           {{"phi-3-mini", 32, 3072, 32, 0, 0, 8192, 32064, 4096},
            {"phi-3-medium", 40, 5120, 40, 10, 0, 17920, 32064, 4096}}};
  f.unpublished = "train.weight_decay train.clip";
  return f;
}

}  // namespace

std::vector<Family> llama_families() {
  return {llama1(), llama2(),       llama3(), mistral(), baichuan2(),
          yi(),     deepseek_llm(), phi3(),   falcon3()};
}

}  // namespace tally::zoo
