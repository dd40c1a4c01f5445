#pragma once
#include "models/config.h"
#include "nn/block.h"

namespace tally {

/// Throws Error, beginning with `where`, unless the fields about norms, residual paths and branches
/// fit each other.
void check_blocks(const ModelConfig& config, const std::string& where);

/// What these fields say, for the module. `config` is resolved and checked.
/// The experts, where there are some.
std::optional<nn::MixtureOptions> experts_of(const ModelConfig& config);

nn::Block::Options block_options(const ModelConfig& config);

}  // namespace tally
