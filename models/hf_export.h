#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "models/hf_family.h"
#include "models/safetensor_file.h"

namespace tally {

/// Puts the values of one parameter, row-major (out, in), into `out`.
using ReadParameter = std::function<void(std::string_view name, std::span<float> out)>;

/// Writes a folder that the public library loads as `family`: config.json and model.safetensors,
/// stored as f32 or bf16. The mirror of Checkpoint::hugging_face: a tied head is not written, fused
/// products are laid out as the family has them. Throws Error if the family cannot say all of the
/// model, or the folder exists already.
void export_hugging_face(const std::string& folder, const ModelConfig& config,
                         const HfFamily& family, const ReadParameter& read, StoredType type);

}  // namespace tally
