#pragma once
#include "models/hf_family.h"

namespace tally {

/// LayerNorm with a bias, and one branch in the feed-forward layer.
inline void use_layer_norm(ModelConfig& m) {
  m.norm = Norm::layer_norm, m.norm_bias = true, m.norm_eps = 1e-5;
  m.gated = false;
}
/// Biases in all products of a block.
inline void use_biases(ModelConfig& m) { m.qkv_bias = m.attention_output_bias = m.mlp_bias = true; }

/// LLaMA itself, and what most families are made from.
HfFamily llama_family();
/// A family whose config.json and names are LLaMA's but for what follows.
HfFamily like_llama(const char* model_type, void (*defaults)(ModelConfig&),
                    void (*read)(HfReader&, ModelConfig&));

/// The entries that nearly all of them have; `eps` is the key of norm_eps.
std::vector<HfEntry> common_entries(const char* eps);
void add_entries(HfFamily& f, std::initializer_list<HfEntry> entries);
HfRow& row_of(HfFamily& f, std::string_view piece);
void remove_row(HfFamily& f, std::string_view piece);
/// The norms of queries and keys.
void add_qk_norm(HfFamily& f);

/// Layers with a window turn by the local base.
void turn_windows_locally(ModelConfig& m);

}  // namespace tally
