#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "models/hf_config.h"
#include "models/weight_source.h"

namespace tally {

/// What stands before most names of a published checkpoint: "transformer." or "model.". Some
/// checkpoints leave it out.
std::string_view hf_prefix(HfFamily);

/// Where each parameter of the model lies in a checkpoint of that family. GPT-2 stores matrices as
/// (in, out) and query, key and value as one; LLaMA stores (out, in) and keeps them apart. Fused
/// and separate forms of our configuration give the same values. Throws Error if the family has no
/// place for one of the parameters.
std::vector<WeightSource> hf_weights(const ModelConfig&, HfFamily, std::string_view prefix);

/// True for tensors that some checkpoints carry and that hold no weights: causal masks and rotary
/// frequencies.
bool is_hf_buffer(HfFamily, std::string_view name);

}  // namespace tally
