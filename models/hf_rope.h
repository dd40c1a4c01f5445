#pragma once
#include <optional>
#include <string>

#include "data/json.h"
#include "models/config.h"

namespace tally {

/// Reads rope_scaling or rope_parameters of a Hugging Face config.json into `config`, whose context
/// is read already: the types default, linear, dynamic, yarn, llama3 and longrope with the entries
/// that each of them has. Returns the base where one stands there. Error, beginning with `where`,
/// for another type, an entry that the type does not know, or one that it needs and that is
/// missing.
///
/// dynamic stretches what max_position_embeddings names: the context becomes that times the factor.
std::optional<double> read_hf_rope(const Json& rope, const std::string& where, ModelConfig& config);

/// The rope_scaling that read_hf_rope reads as these fields; empty where nothing is scaled.
Json write_hf_rope(const ModelConfig& config);

}  // namespace tally
