#pragma once
#include "cli/verbs.h"

namespace tally::cli {

/// `compare --values`: one batch, forward and backward, through both models, and the first op whose
/// outputs differ. Returns 0 whether they do or not; Error where the batch does not fit both.
int compare_values(const CompareOptions& options);

}  // namespace tally::cli
