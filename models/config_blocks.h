#pragma once
#include "models/config.h"
#include "nn/block.h"

namespace tally {

/// Throws Error, beginning with `where`, unless the fields about norms, residual paths and branches
/// fit each other.
void check_blocks(const ModelConfig& config, const std::string& where);

/// What these fields say, for the module. `config` is resolved and checked.
nn::Block::Options block_options(const ModelConfig& config);

}  // namespace tally
