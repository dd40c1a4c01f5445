#pragma once
#include <string>
#include <vector>

#include "cli/common.h"
#include "models/zoo.h"

namespace tally::cli {

/// The lecture's tables, by name: norm, placement, position, activation, width, heads, aspect,
/// vocabulary, regularisation, stability, and all, which has the columns of its overview.
const std::vector<std::string>& model_table_names();

/// Head and a row for each preset: name, year and the columns of the table, of the preset's own
/// resolved configuration. "?": the model's value is not published. Error for an unknown table.
std::vector<std::vector<std::string>> model_table(const std::string& table,
                                                  const std::vector<const Preset*>& presets);
/// The same as a list of objects; numbers are numbers, what is not published is null.
Json model_table_json(const std::string& table, const std::vector<const Preset*>& presets);

/// One column of one preset, as the tables print it.
std::string model_cell(const std::string& column, const Preset& preset);

/// docs/models.md: a row for each family, and what its page says besides.
std::string models_page();

}  // namespace tally::cli
