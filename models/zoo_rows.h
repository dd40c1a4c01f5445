#pragma once
// How the rows of the zoo are written: a family is a block and a way of training, a size changes a
// few of its numbers.
#include <span>
#include <vector>

#include "models/zoo.h"

namespace tally::zoo {

/// One size of a family. 0: as ModelConfig::resolve() fills it in.
struct Size {
  const char* name;
  int64_t layers, d_model, heads, kv_heads, head_dim, d_ff, vocab, context;
  double lr = 0;                           // 0: not published
  const char* shows = nullptr;             // nullptr: the family's
  void (*change)(ModelConfig&) = nullptr;  // what else this size does otherwise
  const char* note = nullptr;              // nullptr: the family's
};

/// A family: what all its sizes share.
struct Family {
  const char* key;  // of its scaled-down presets: KEY-smoke, KEY-laptop, KEY-lab; "": none
  const char* name;
  int year;
  const char* source;
  const char* shows;
  ModelConfig base;
  TrainConfig train;
  std::vector<Size> sizes;
  void (*finish)(ModelConfig&) = nullptr;  // fields that depend on the size
  const char* note = "";
  const char* unpublished = "";
};

/// LayerNorm and biases everywhere, GELU, learned positions, a tied head: GPT-1 to 3.
ModelConfig gpt_block();
/// RMSNorm, SwiGLU, rotary positions, no biases.
ModelConfig llama_block(double eps, double base);
/// LayerNorm with bias or without.
void use_layer_norm(ModelConfig& m, bool bias);
/// All three kinds of dropout.
void use_dropout(ModelConfig& m, double probability);
/// Changes that sizes name: a tied head; one of its own.
void tied(ModelConfig& m);
void untied(ModelConfig& m);

/// Published models: AdamW (0.9, 0.95), clip 1, cosine to 10 %, 2000 steps of warm-up.
TrainConfig published(double weight_decay = 0.1);

/// Turns a family into presets, its sizes first.
void add(std::vector<Preset>& zoo, const Family& family);
/// Three sizes of a family's block that train here on bytes: smoke within 1e11 FLOPs in all, laptop
/// 1e13, lab 5e15, by 6 x parameters x tokens.
void add_scaled_down(std::vector<Preset>& zoo, const Family& family);

// The rows, by file.
std::vector<Preset> own_presets();
std::vector<Family> encoder_families();
std::vector<Family> gpt_families();
std::vector<Family> parallel_families();
std::vector<Family> llama_families();
std::vector<Family> small_families();
std::vector<Family> qwen_families();
std::vector<Family> gemma_families();
std::vector<Family> stable_families();
std::vector<Family> latent_families();
std::vector<Family> hybrid_families();

}  // namespace tally::zoo
