// Small models that were trained long.
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

const char* const kSmollm = "huggingface/smollm, text/pretraining/*.yaml; released configurations";
const char* const kStable = "the rate stayed constant and fell at the end (WSD); cosine here";

ModelConfig smollm_block(double eps, double base) {
  ModelConfig m = llama_block(eps, base);
  m.tied_head = true;
  return m;
}

Family smollm() {
  Family f{"",
           "SmolLM",
           2024,
           kSmollm,
           "L59 L95",
           smollm_block(1e-5, 1e4),
           published(0.01),
           {{"smollm-135m", 30, 576, 9, 3, 0, 1536, 49152, 2048, 3e-3},
            {"smollm-360m", 32, 960, 15, 5, 0, 2560, 49152, 2048, 3e-3},
            {"smollm-1.7b", 24, 2048, 32, 0, 0, 8192, 49152, 2048, 5e-4, "L55"}}};
  f.note = kStable;
  return f;
}

Family smollm2() {
  Family f{"",
           "SmolLM2",
           2024,
           kSmollm,
           "L51 L59",
           smollm_block(1e-5, 1e5),
           published(0.01),
           {{"smollm2-135m", 30, 576, 9, 3, 0, 1536, 49152, 8192, 3e-3},
            {"smollm2-360m", 32, 960, 15, 5, 0, 2560, 49152, 8192, 3e-3},
            {"smollm2-1.7b", 24, 2048, 32, 0, 0, 8192, 49152, 8192, 5e-4, "L51 L55",
             [](ModelConfig& c) { c.rope_base = 1.3e5; }}}};
  f.note = kStable;
  return f;
}

Family smollm3() {
  ModelConfig m = smollm_block(1e-6, 5e6);
  m.position_pattern = {"global", "global", "global", "none"};
  Family f{"smollm3",
           "SmolLM3",
           2025,
           "huggingface/smollm, text/pretraining/smollm3/*.yaml; released configuration",
           "L51 L55 L61 L95 L98",
           m,
           published(),
           {{"smollm3-3b", 36, 2048, 16, 4, 0, 11008, 128256, 65536, 2e-4}}};
  f.note = kStable;
  return f;
}

}  // namespace

std::vector<Family> small_families() { return {smollm(), smollm2(), smollm3()}; }

}  // namespace tally::zoo
