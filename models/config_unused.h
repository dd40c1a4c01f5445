#pragma once
#include "models/config.h"

namespace tally {

/// Throws Error, beginning with `where`, for a field that the other fields leave without meaning:
/// one that would be ignored is a mistake of whoever set it.
void check_all_used(const ModelConfig& config, const std::string& where, const Spelling& spelling);

}  // namespace tally
