#pragma once
#include "models/config.h"

namespace tally {

/// Throws Error, beginning with `where`, for a field that the other fields leave without meaning:
/// one that would be ignored is a mistake of whoever set it.
void check_all_used(const ModelConfig& config, const std::string& where, const Spelling& spelling);

/// The same of a training, for the fields that somebody has set (names of train_fields()). Others are
/// left alone: a preset's beta2 is no mistake of who tries SGD on it.
void check_set_fields(const TrainConfig& config, std::span<const std::string> set,
                      const std::string& where);

}  // namespace tally
