#pragma once
#include <optional>

#include "models/config.h"
#include "nn/latent_attention.h"

namespace tally {

inline bool is_latent(const ModelConfig& c) { return c.attention == AttentionKind::latent; }

/// Throws Error, beginning with `where`, unless the sizes of latent attention are there where
/// `attention` asks for it, and fit the other fields.
void check_latent(const ModelConfig& config, const std::string& where,
                  const Spelling& spelling = own_spelling);

/// What these fields say, for the module; empty for other kinds of attention. `config` is resolved
/// and checked.
std::optional<nn::LatentAttentionOptions> latent_options(const ModelConfig& config);

/// Parameters of a layer's matrices, all of which multiply each token once, whichever way it
/// computes; and those of its two norms.
struct LatentCounts {
  int64_t matrices = 0, norms = 0;
};
LatentCounts latent_counts(const ModelConfig& config);

/// The matrices in double: sizes that are not checked may leave 64 bits.
double latent_bound(const ModelConfig& config);

}  // namespace tally
