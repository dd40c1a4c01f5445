// Models of ours: small ones that train here, and the lecture's defaults.
#include <algorithm>
#include <cmath>

#include "models/parameters.h"
#include "models/zoo_rows.h"

namespace tally::zoo {
namespace {

const char* const kOurs = "this project";

/// Steps for a few minutes at most.
TrainConfig small_run(int64_t batch, int64_t steps, double lr) {
  TrainConfig t;
  t.batch = batch, t.steps = steps, t.lr = lr, t.warmup = steps / 20;
  return t;
}

ModelConfig tied_llama() {
  ModelConfig m = llama_block(1e-5, 1e4);
  m.tied_head = true;
  return m;
}

void add_row(std::vector<Preset>& zoo, const char* family, const char* source, const char* shows,
             const ModelConfig& block, const Size& s, const TrainConfig& train) {
  Family f{"", family, 2026, source, shows, block, train, {s}};
  f.sizes[0].lr = train.lr;
  add(zoo, f);
}

void add_small(std::vector<Preset>& zoo) {
  const ModelConfig gpt = gpt_block(), llama = tied_llama();
  const char *g = "L18 L43 L53", *l = "L6 L48 L54";
  add_row(zoo, "GPT-2", kOurs, g, gpt, {"gpt-smoke", 2, 64, 2, 0, 0, 0, 256, 64},
          small_run(8, 200, 3e-3));
  add_row(zoo, "LLaMA", kOurs, l, llama, {"llama-smoke", 2, 64, 2, 0, 0, 0, 256, 64},
          small_run(8, 200, 3e-3));
  add_row(zoo, "LLaMA", kOurs, "L6 L48 L54 L61 L95", llama, {"demo", 4, 128, 4, 2, 0, 0, 2048, 256},
          small_run(16, 700, 4e-3));
  add_row(zoo, "GPT-2", kOurs, g, gpt, {"gpt-laptop", 4, 128, 4, 0, 0, 0, 256, 256},
          small_run(16, 380, 2e-3));
  add_row(zoo, "LLaMA", kOurs, l, llama, {"llama-laptop", 4, 128, 4, 0, 0, 0, 256, 256},
          small_run(16, 360, 2e-3));
  add_row(zoo, "GPT-2", kOurs, g, gpt, {"gpt-lab", 8, 384, 6, 0, 0, 0, 256, 512},
          small_run(32, 3000, 1e-3));
  add_row(zoo, "LLaMA", kOurs, l, llama, {"llama-lab", 8, 384, 6, 0, 0, 0, 256, 512},
          small_run(32, 3000, 1e-3));
  const char* bench = "L20 L21";
  add_row(zoo, "GPT-2", "bench/: the GPT that peers are timed on", bench, gpt,
          {"tiny-gpt", 6, 384, 6, 0, 0, 1536, 256, 256}, small_run(8, 2000, 1e-3));
  add_row(zoo, "LLaMA", "bench/: the LLaMA that peers are timed on", bench, llama,
          {"tiny-llama", 6, 384, 6, 0, 0, 1024, 256, 256, 0, nullptr, untied},
          small_run(8, 2000, 1e-3));
}

void add_stories(std::vector<Preset>& zoo) {
  Family f{"",
           "LLaMA",
           2023,
           "karpathy/llama2.c, README, table of models; TinyStories (arXiv:2305.07759)",
           "L6 L61",
           tied_llama(),
           published(),
           {{"stories-15m", 6, 288, 6, 0, 0, 768, 32000, 256, 5e-4},
            {"stories-42m", 8, 512, 8, 0, 0, 1376, 32000, 1024, 5e-4},
            {"llama-110m", 12, 768, 12, 0, 0, 2048, 32000, 1024, 4e-4, "L6 L54"}}};
  add(zoo, f);
}

/// The choices of 2017 and those of today at one size: they differ as the lecture says.
void add_two_transformers(std::vector<Preset>& zoo) {
  ModelConfig original = gpt_block();
  original.placement = Placement::post, original.position = Position::sinusoidal;
  original.activation = Activation::relu, original.init = Init::normal;
  Family f{
      "original",
      "original",
      2017,
      "the lecture's original Transformer (Vaswani et al. 2017, arXiv:1706.03762), as a decoder",
      "L5 L8 L11 L44",
      original,
      published(0),
      {{"original", 6, 512, 8, 0, 0, 2048, 37000, 512, 7e-4}}};
  f.finish = [](ModelConfig& m) { m.embedding_scale = std::sqrt(static_cast<double>(m.d_model)); };
  add(zoo, f);
  add_scaled_down(zoo, f);
  Family g{"modern",     "modern",
           2026,         "the lecture's modern variant: pre-norm RMSNorm, RoPE, SwiGLU, no biases",
           "L6 L28 L99", tied_llama(),
           published(),  {{"modern", 6, 512, 8, 0, 0, 1408, 37000, 512, 1e-3}}};
  add(zoo, g);
  add_scaled_down(zoo, g);
}

/// The consensus table (L99). Below 100 M a width of 100 a layer would leave a layer or two, and
/// heads of 128 one or two heads: these rows have heads of 32 and 64.
void add_defaults(std::vector<Preset>& zoo) {
  ModelConfig m = tied_llama();
  m.qk_norm = QKNorm::head, m.z_loss = 1e-5;
  const Size sizes[] = {{"default-2026-0.2m", 2, 96, 3, 1, 32, 256, 256, 256, 4e-3},
                        {"default-2026-1m", 3, 192, 6, 2, 32, 512, 256, 256, 4e-3},
                        {"default-2026-4m", 4, 256, 4, 2, 64, 704, 4096, 512, 3e-3},
                        {"default-2026-10m", 4, 384, 6, 2, 64, 1024, 8192, 512, 3e-3},
                        {"default-2026-30m", 8, 512, 8, 2, 64, 1408, 16384, 1024, 2e-3},
                        {"default-2026-125m", 8, 1024, 8, 2, 128, 2816, 32768, 2048, 1e-3},
                        {"default-2026-350m", 12, 1536, 12, 4, 128, 4096, 32768, 2048, 6e-4},
                        {"default-2026-1b", 20, 2048, 16, 4, 128, 5632, 32768, 4096, 4e-4}};
  for (const Size& s : sizes) {
    TrainConfig t = published();
    t.batch = 16, t.lr = s.lr;
    add_row(zoo, "default-2026", "the lecture's consensus table", "L75 L77 L99", m, s, t);
    RunConfig& c = zoo.back().config;
    // 20 tokens a parameter (Hoffmann et al. 2022, arXiv:2203.15556), a step of 2^19 at most.
    ModelConfig full = c.model;
    full.resolve();
    c.train.accumulation = std::clamp<int64_t>((1 << 19) / (16 * s.context), 1, s.layers);
    c.train.steps = 20 * parameter_count(full) / (c.train.batch * c.train.accumulation * s.context);
    c.train.warmup = std::min<int64_t>(2000, c.train.steps / 50);
  }
}

}  // namespace

std::vector<Preset> own_presets() {
  std::vector<Preset> zoo;
  add_small(zoo);
  add_two_transformers(zoo);
  add_defaults(zoo);
  add_stories(zoo);
  return zoo;
}

}  // namespace tally::zoo
