#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"

namespace tally {

/// The configuration as a document {"model": {...}, "train": {...}}, every field in table order.
std::string to_json_text(const RunConfig&);
/// The object of "model" alone: what two runs of one model share.
std::string to_json_text(const ModelConfig&);

/// Reads such a document; // and /* */ comments are allowed. Fields that are left out keep their
/// defaults; unknown fields, wrong types and unknown values are refused with a did-you-mean, in an
/// Error that begins with `origin`. Derived fields are not filled in yet: see resolve_and_check.
RunConfig run_config_from_json(std::string_view text, const std::string& origin);

/// run_config_from_json of a file.
RunConfig load_run_config(const std::string& path);

/// Fields of "train" that such a document sets to another value than the default.
std::vector<std::string> changed_train_fields(std::string_view text, const std::string& origin);

/// Applies one `--set`: "model.d_model=256" or "train.schedule=cosine". Throws Error if the field
/// is unknown or the value has the wrong type; ranges are checked by resolve_and_check.
void apply_override(RunConfig&, std::string_view assignment);

/// Both tables of fields in Markdown, as printed in docs/config.md.
std::string field_reference();

}  // namespace tally
