#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "models/hf_family.h"
#include "models/weight_source.h"

namespace tally {

/// Where each parameter and buffer of the model lies in a checkpoint of that family, whose names begin with
/// `prefix`: the family's, or "" in checkpoints that leave it out. Fused and separate forms of our
/// configuration give the same values. Throws Error if the family has no place for one of the
/// parameters.
std::vector<WeightSource> hf_weights(const ModelConfig&, const HfFamily&, std::string_view prefix);

/// The tensor of an untied head.
std::string hf_head(const HfFamily&);

/// True for tensors that some checkpoints carry and that hold no weights: causal masks and rotary
/// frequencies.
bool is_hf_buffer(const HfFamily&, std::string_view name);

}  // namespace tally
