#pragma once
#include "cli/verbs.h"

namespace tally::cli {

/// Two models by name: on which axes they differ, field by field, and what both cost.
int compare_models(const CompareOptions& options);

}  // namespace tally::cli
