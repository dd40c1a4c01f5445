#include "models/zoo.h"

#include "core/error.h"
#include "models/suggest.h"

namespace tally {
namespace {

struct Shape {
  int64_t layers, d_model, heads, kv_heads, d_ff, vocab, context;
};

void set_shape(ModelConfig& m, const Shape& s) {
  m.layers = s.layers, m.d_model = s.d_model, m.heads = s.heads, m.kv_heads = s.kv_heads;
  m.d_ff = s.d_ff, m.vocab = s.vocab, m.context = s.context;
}

/// The block of GPT-2: LayerNorm and biases everywhere, GELU, learned positions.
ModelConfig gpt(const Shape& shape, bool tied) {
  ModelConfig m;
  set_shape(m, shape);
  m.norm = Norm::layer_norm, m.norm_bias = true;
  m.activation = Activation::gelu_tanh, m.gated = false;
  m.position = Position::learned;
  m.qkv_bias = m.attention_output_bias = m.mlp_bias = true;
  m.tied_head = tied, m.init = Init::gpt2;
  return m;
}

/// The block of LLaMA: RMSNorm, SwiGLU, rotary positions, no biases.
ModelConfig llama(const Shape& shape, double eps, double base, bool tied) {
  ModelConfig m;
  set_shape(m, shape);
  m.norm_eps = eps, m.rope_base = base, m.tied_head = tied;
  return m;
}

struct Row {
  const char* name;
  const char* family;
  int year;
  const char* source;
  const char* shows;
};

Preset preset(const Row& row, ModelConfig model, const TrainConfig& train) {
  model.name = row.name;
  return {row.name, row.family, row.year, row.source, row.shows, {std::move(model), train}};
}

/// Runs on a laptop: steps for a few minutes at most.
TrainConfig small_run(int64_t batch, int64_t steps, double lr) {
  TrainConfig t;
  t.batch = batch, t.steps = steps, t.lr = lr, t.warmup = steps / 20;
  return t;
}

/// Published models: AdamW (0.9, 0.95), decay 0.1, clip 1, cosine to 10 %, 2000 steps of warm-up.
TrainConfig large_run(double lr) {
  TrainConfig t;
  t.batch = 1, t.steps = 100000, t.lr = lr, t.warmup = 2000;
  return t;
}

void add_own(std::vector<Preset>& zoo) {
  const char* ours = "this project";
  zoo.push_back(preset({"gpt-smoke", "GPT-2", 2026, ours, "L18 L43 L53"},
                       gpt({2, 64, 2, 0, 0, 256, 64}, true), small_run(8, 200, 3e-3)));
  zoo.push_back(preset({"llama-smoke", "LLaMA", 2026, ours, "L6 L48 L54"},
                       llama({2, 64, 2, 0, 0, 256, 64}, 1e-5, 1e4, true), small_run(8, 200, 3e-3)));
  zoo.push_back(preset({"demo", "LLaMA", 2026, ours, "L6 L48 L54 L61 L95"},
                       llama({4, 128, 4, 2, 0, 2048, 256}, 1e-5, 1e4, true),
                       small_run(16, 700, 4e-3)));
  zoo.push_back(preset({"gpt-laptop", "GPT-2", 2026, ours, "L18 L43 L53"},
                       gpt({6, 256, 8, 0, 0, 256, 256}, true), small_run(16, 2000, 1e-3)));
  zoo.push_back(preset({"llama-laptop", "LLaMA", 2026, ours, "L6 L48 L54"},
                       llama({6, 256, 8, 0, 0, 256, 256}, 1e-5, 1e4, true),
                       small_run(16, 2000, 1e-3)));
  zoo.push_back(
      preset({"tiny-gpt", "GPT-2", 2026, "bench/: the GPT that peers are timed on", "L20 L21"},
             gpt({6, 384, 6, 0, 1536, 256, 256}, true), small_run(8, 2000, 1e-3)));
  zoo.push_back(
      preset({"tiny-llama", "LLaMA", 2026, "bench/: the LLaMA that peers are timed on", "L20 L21"},
             llama({6, 384, 6, 0, 1024, 256, 256}, 1e-5, 1e4, false), small_run(8, 2000, 1e-3)));
}

void add_stories(std::vector<Preset>& zoo) {
  const char* source = "karpathy/llama2.c, README, table of models; TinyStories (arXiv:2305.07759)";
  zoo.push_back(preset({"stories-15m", "LLaMA", 2023, source, "L6 L61"},
                       llama({6, 288, 6, 0, 768, 32000, 256}, 1e-5, 1e4, true), large_run(5e-4)));
  zoo.push_back(preset({"stories-42m", "LLaMA", 2023, source, "L6 L61"},
                       llama({8, 512, 8, 0, 1376, 32000, 1024}, 1e-5, 1e4, true), large_run(5e-4)));
  zoo.push_back(preset({"llama-110m", "LLaMA", 2023, source, "L6 L54"},
                       llama({12, 768, 12, 0, 2048, 32000, 1024}, 1e-5, 1e4, true),
                       large_run(4e-4)));
}

void add_gpt2(std::vector<Preset>& zoo) {
  const char* source =
      "Radford et al. 2019; released configurations (the paper prints 117M to 1542M)";
  const auto add = [&](const char* name, const char* shows, int64_t layers, int64_t d,
                       int64_t heads) {
    zoo.push_back(preset({name, "GPT-2", 2019, source, shows},
                         gpt({layers, d, heads, 0, 0, 50257, 1024}, true), large_run(2.5e-4)));
  };
  add("gpt2", "L18 L43 L53 L57 L61", 12, 768, 12);
  add("gpt2-medium", "L18 L43 L53", 24, 1024, 16);
  add("gpt2-large", "L18 L43 L53", 36, 1280, 20);
  add("gpt2-xl", "L18 L43 L53 L59", 48, 1600, 25);
}

void add_llama(std::vector<Preset>& zoo) {
  const char* one = "Touvron et al. 2023, arXiv:2302.13971, table 2; released configurations";
  const char* two = "Touvron et al. 2023, arXiv:2307.09288, table 1; released configurations";
  zoo.push_back(preset({"llama-7b", "LLaMA", 2023, one, "L6 L18 L48 L54 L62 L81"},
                       llama({32, 4096, 32, 0, 11008, 32000, 2048}, 1e-6, 1e4, false),
                       large_run(3e-4)));
  zoo.push_back(preset({"llama-13b", "LLaMA", 2023, one, "L54 L59"},
                       llama({40, 5120, 40, 0, 13824, 32000, 2048}, 1e-6, 1e4, false),
                       large_run(3e-4)));
  zoo.push_back(preset({"llama-33b", "LLaMA", 2023, one, "L54 L59"},
                       llama({60, 6656, 52, 0, 17920, 32000, 2048}, 1e-6, 1e4, false),
                       large_run(1.5e-4)));
  zoo.push_back(preset({"llama-65b", "LLaMA", 2023, one, "L54 L59"},
                       llama({80, 8192, 64, 0, 22016, 32000, 2048}, 1e-6, 1e4, false),
                       large_run(1.5e-4)));
  zoo.push_back(preset({"llama-2-7b", "LLaMA 2", 2023, two, "L54 L62"},
                       llama({32, 4096, 32, 0, 11008, 32000, 4096}, 1e-5, 1e4, false),
                       large_run(3e-4)));
  zoo.push_back(preset({"llama-2-13b", "LLaMA 2", 2023, two, "L54"},
                       llama({40, 5120, 40, 0, 13824, 32000, 4096}, 1e-5, 1e4, false),
                       large_run(3e-4)));
  zoo.push_back(preset({"llama-2-70b", "LLaMA 2", 2023, two, "L54 L57 L95"},
                       llama({80, 8192, 64, 8, 28672, 32000, 4096}, 1e-5, 1e4, false),
                       large_run(1.5e-4)));
}

void add_llama3(std::vector<Preset>& zoo) {
  const char* three = "Dubey et al. 2024, arXiv:2407.21783, table 3; released configurations";
  // The released 3.1 and 3.2 stretch the rotary frequencies to 131,072 tokens after pre-training.
  // That scaling is not part of ModelConfig: these rows are the pre-training form, context 8192.
  const char* stretched =
      "Dubey et al. 2024, arXiv:2407.21783, table 3; before the rotary frequencies were stretched "
      "to 131,072 tokens";
  zoo.push_back(preset({"llama-3-8b", "Llama 3", 2024, three, "L51 L54 L61 L95"},
                       llama({32, 4096, 32, 8, 14336, 128256, 8192}, 1e-5, 5e5, false),
                       large_run(3e-4)));
  zoo.push_back(preset({"llama-3-70b", "Llama 3", 2024, three, "L51 L54 L59 L95"},
                       llama({80, 8192, 64, 8, 28672, 128256, 8192}, 1e-5, 5e5, false),
                       large_run(1.5e-4)));
  zoo.push_back(preset({"llama-3.1-405b", "Llama 3", 2024, stretched, "L54 L59 L95"},
                       llama({126, 16384, 128, 8, 53248, 128256, 8192}, 1e-5, 5e5, false),
                       large_run(8e-5)));
  zoo.push_back(preset({"llama-3.2-1b", "Llama 3", 2024, stretched, "L61 L95"},
                       llama({16, 2048, 32, 8, 8192, 128256, 8192}, 1e-5, 5e5, true),
                       large_run(3e-4)));
  zoo.push_back(preset({"llama-3.2-3b", "Llama 3", 2024, stretched, "L61 L95"},
                       llama({28, 3072, 24, 8, 8192, 128256, 8192}, 1e-5, 5e5, true),
                       large_run(3e-4)));
}

/// Other names on LLaMA's block.
void add_relatives(std::vector<Preset>& zoo) {
  const char* deepseek = "DeepSeek-AI 2024, arXiv:2401.02954, table 2";
  zoo.push_back(preset({"deepseek-llm-7b", "DeepSeek LLM", 2024, deepseek, "L54 L61"},
                       llama({30, 4096, 32, 0, 11008, 102400, 4096}, 1e-6, 1e4, false),
                       large_run(4.2e-4)));
  zoo.push_back(preset({"deepseek-llm-67b", "DeepSeek LLM", 2024, deepseek, "L54 L59 L95"},
                       llama({95, 8192, 64, 8, 22016, 102400, 4096}, 1e-6, 1e4, false),
                       large_run(3.2e-4)));
  const char* yi = "01.AI 2024, arXiv:2403.04652, table 1";
  zoo.push_back(preset({"yi-6b", "Yi", 2024, yi, "L51 L54 L61 L95"},
                       llama({32, 4096, 32, 4, 11008, 64000, 4096}, 1e-5, 5e6, false),
                       large_run(3e-4)));
  zoo.push_back(preset({"yi-34b", "Yi", 2024, yi, "L51 L54 L61 L95"},
                       llama({60, 7168, 56, 8, 20480, 64000, 4096}, 1e-5, 5e6, false),
                       large_run(1.5e-4)));
  const char* smollm = "huggingface/smollm, text/pretraining/*.yaml";
  zoo.push_back(preset({"smollm-135m", "SmolLM", 2024, smollm, "L59 L95"},
                       llama({30, 576, 9, 3, 1536, 49152, 2048}, 1e-5, 1e4, true),
                       large_run(3e-3)));
  zoo.push_back(preset({"smollm-360m", "SmolLM", 2024, smollm, "L59 L95"},
                       llama({32, 960, 15, 5, 2560, 49152, 2048}, 1e-5, 1e4, true),
                       large_run(3e-3)));
  zoo.push_back(preset({"smollm-1.7b", "SmolLM", 2024, smollm, "L55"},
                       llama({24, 2048, 32, 0, 8192, 49152, 2048}, 1e-5, 1e4, true),
                       large_run(5e-4)));
  zoo.push_back(preset({"smollm2-135m", "SmolLM2", 2024, smollm, "L51 L59"},
                       llama({30, 576, 9, 3, 1536, 49152, 8192}, 1e-5, 1e5, true),
                       large_run(3e-3)));
  zoo.push_back(preset({"smollm2-1.7b", "SmolLM2", 2024, smollm, "L51 L55"},
                       llama({24, 2048, 32, 0, 8192, 49152, 8192}, 1e-5, 1.3e5, true),
                       large_run(5e-4)));
}

/// DeepSeek-V2: latent attention, rotary positions stretched by YaRN from 4096 tokens, experts from
/// the second layer on.
ModelConfig deepseek_v2(const Shape& shape, int64_t q_rank, int64_t experts, int64_t expert_d_ff) {
  ModelConfig m = llama(shape, 1e-6, 1e4, false);
  m.attention = AttentionKind::latent;
  m.q_lora_rank = q_rank, m.kv_lora_rank = 512;
  m.qk_nope_head_dim = 128, m.qk_rope_head_dim = 64, m.v_head_dim = 128;
  m.rope_layout = RopeLayout::interleaved, m.rope_scaling = RopeScale::yarn;
  m.rope_factor = 40, m.rope_original_context = 4096;
  m.rope_mscale = m.rope_mscale_all_dim = 0.707;
  m.experts = experts, m.experts_per_token = 6, m.expert_d_ff = expert_d_ff;
  m.shared_experts = 2, m.first_expert_layer = 1, m.router_renormalise = false;
  m.init_std = 0.006;
  return m;
}

void add_latent(std::vector<Preset>& zoo) {
  const char* source = "DeepSeek-AI 2024, arXiv:2405.04434, sec. 3.1 and appendix B";
  zoo.push_back(preset({"deepseek-v2-lite", "DeepSeek-V2", 2024, source, "L52 L54 L96"},
                       deepseek_v2({27, 2048, 16, 0, 10944, 102400, 163840}, 0, 64, 1408),
                       large_run(4.2e-4)));
  ModelConfig large = deepseek_v2({60, 5120, 128, 0, 12288, 102400, 163840}, 1536, 160, 1536);
  large.router_groups = 8, large.router_kept_groups = 3, large.router_scale = 16;
  zoo.push_back(preset({"deepseek-v2", "DeepSeek-V2", 2024, source, "L52 L54 L59 L96"},
                       std::move(large), large_run(2.4e-4)));
}

std::vector<Preset> make_presets() {
  std::vector<Preset> zoo;
  add_own(zoo);
  add_stories(zoo);
  add_gpt2(zoo);
  add_llama(zoo);
  add_llama3(zoo);
  add_relatives(zoo);
  add_latent(zoo);
  for (Preset& p : encoder_presets()) zoo.push_back(std::move(p));
  return zoo;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> zoo = make_presets();
  return zoo;
}

const Preset* find_preset_or_null(std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

const Preset& find_preset(std::string_view name) {
  if (const Preset* found = find_preset_or_null(name)) return *found;
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  const std::string best = closest(name, names);
  fail("there is no preset \"", name, "\"; ",
       best.empty() ? "`tally models` lists them" : "did you mean \"" + best + "\"?");
}

}  // namespace tally
