#pragma once
#include <optional>

#include "models/config.h"
#include "nn/shared_attention.h"

namespace tally {

inline bool is_shared(const ModelConfig& c) { return c.attention == AttentionKind::shared; }

/// Throws Error, beginning with `where`, unless the fields of shared attention are there where
/// `attention` asks for it alone, and fit the other fields.
void check_shared(const ModelConfig& config, const std::string& where,
                  const Spelling& spelling = own_spelling);

/// What these fields say of all layers, for the module; empty for other kinds of attention.
/// `config` is resolved and checked.
std::optional<nn::SharedAttentionOptions> shared_options(const ModelConfig& config);

/// What may differ by layer, for any kind of attention that has heads.
struct LayerShape {
  int64_t head_dim = 0, kv_heads = 0;
  bool takes = false;           // keys and values of an earlier layer
  bool keys_as_values = false;  // one product for both
  int64_t d_ff = 0;             // of its feed-forward layer, where that is dense
};
LayerShape layer_shape(const ModelConfig& config, int64_t layer);

/// Parameters of all layers' matrices, and of their norms of queries and keys.
struct SharedCounts {
  int64_t matrices = 0, norms = 0;
};
SharedCounts shared_counts(const ModelConfig& config);

/// Parameters that a model has for the embeddings of its layers, which --set layer_input_dim asks
/// for: the table, its product and the layers' matrices; and those of the norms.
struct LayerInputCounts {
  int64_t table = 0, matrices = 0, norms = 0;
};
LayerInputCounts layer_input_counts(const ModelConfig& config);

}  // namespace tally
