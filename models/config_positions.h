#pragma once
#include "models/config.h"
#include "nn/positions.h"

namespace tally {

/// Throws Error, beginning with `where`, unless the fields about positions fit each other and the
/// heads.
void check_positions(const ModelConfig& config, const std::string& where,
                     const Spelling& spelling = own_spelling);

/// What these fields say, for the module. `config` is resolved and checked.
nn::PositionOptions position_options(const ModelConfig& config);

/// Elements of a head (of latent attention: of its part that turns) that turn in global layers: all for `proportional`, whose other
/// pairs turn by nothing.
int64_t rotary_dim(const ModelConfig& config);

}  // namespace tally
