// Qwen: biases of queries, keys and values, then a norm of queries and keys in their place.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

ModelConfig qwen_block(double base) {
  ModelConfig m = llama_block(1e-6, base);
  m.qkv_bias = true;
  return m;
}

const char* const kUndisclosed = "train.weight_decay train.clip";

Family qwen1() {
  TrainConfig t = published();
  t.warmup = 3000;
  Family f{"qwen",
           "Qwen",
           2023,
           "Bai et al. 2023, arXiv:2309.16609; released configurations",
           "L25 L35 L54 L61 L64",
           qwen_block(1e4),
           t,
           {{"qwen-1.8b", 24, 2048, 16, 0, 0, 5504, 151936, 8192, 3e-4},
            {"qwen-7b", 32, 4096, 32, 0, 0, 11008, 151936, 8192, 3e-4},
            {"qwen-14b", 40, 5120, 40, 0, 0, 13696, 152064, 2048, 3e-4, nullptr,
             [](ModelConfig& c) { use_dropout(c, 0.1); }},
            {"qwen-72b", 80, 8192, 64, 0, 0, 24576, 152064, 32768, 3e-4, nullptr,
             [](ModelConfig& c) { c.rope_base = 1e6; }}}};
  f.note =
      "dynamic NTK scaling and log-n attention of its inference code are not here; dropout 0.1 of "
      "14B is the lecture's figure";
  return f;
}

Family qwen2() {
  Family f{"",
           "Qwen2",
           2024,
           "Yang et al. 2024, arXiv:2407.10671, table 1; released configurations",
           "L25 L54 L61 L95",
           qwen_block(1e6),
           published(),
           {{"qwen2-0.5b", 24, 896, 14, 2, 0, 4864, 151936, 32768, 0, nullptr, tied},
            {"qwen2-1.5b", 28, 1536, 12, 2, 0, 8960, 151936, 32768, 0, nullptr, tied},
            {"qwen2-7b", 28, 3584, 28, 4, 0, 18944, 152064, 32768},
            {"qwen2-72b", 80, 8192, 64, 8, 0, 29568, 152064, 32768}}};
  f.unpublished = kUndisclosed;
  return f;
}

void coarser(ModelConfig& m) { m.norm_eps = 1e-5; }

Family qwen25() {
  Family f{"qwen2.5",
           "Qwen2.5",
           2024,
           "Qwen Team 2024, arXiv:2412.15115, table 1; released configurations",
           "L25 L54 L61 L95",
           qwen_block(1e6),
           published(),
           {{"qwen2.5-0.5b", 24, 896, 14, 2, 0, 4864, 151936, 32768, 0, nullptr, tied},
            {"qwen2.5-1.5b", 28, 1536, 12, 2, 0, 8960, 151936, 32768, 0, nullptr, tied},
            {"qwen2.5-3b", 36, 2048, 16, 2, 0, 11008, 151936, 32768, 0, nullptr, tied},
            {"qwen2.5-7b", 28, 3584, 28, 4, 0, 18944, 152064, 131072},
            {"qwen2.5-14b", 48, 5120, 40, 8, 0, 13824, 152064, 131072, 0, nullptr, coarser},
            {"qwen2.5-32b", 64, 5120, 40, 8, 0, 27648, 152064, 131072, 0, nullptr, coarser},
            {"qwen2.5-72b", 80, 8192, 64, 8, 0, 29568, 152064, 131072, 0, nullptr, coarser}}};
  f.unpublished = kUndisclosed;
  return f;
}

Family qwen3() {
  ModelConfig m = llama_block(1e-6, 1e6);
  m.qk_norm = QKNorm::head;
  Family f{"qwen3",
           "Qwen3",
           2025,
           "Yang et al. 2025, arXiv:2505.09388, table 1; released configurations",
           "L58 L61 L72 L95",
           m,
           published(),
           {{"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 0, nullptr, tied},
            {"qwen3-1.7b", 28, 2048, 16, 8, 0, 6144, 151936, 40960, 0, nullptr, tied},
            {"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 0, nullptr, tied},
            {"qwen3-8b", 36, 4096, 32, 8, 0, 12288, 151936, 40960},
            {"qwen3-14b", 40, 5120, 40, 8, 0, 17408, 151936, 40960},
            {"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, 40960}}};
  f.unpublished = kUndisclosed;
  return f;
}

}  // namespace

std::vector<Family> qwen_families() { return {qwen1(), qwen2(), qwen25(), qwen3()}; }

}  // namespace tally::zoo
