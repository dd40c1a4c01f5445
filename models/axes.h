#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"

namespace tally {

/// The axes along which the lecture compares models, in its order: norm, placement, biases,
/// activation, position, attention, shape, vocabulary, regularisation, stability and so on.
std::span<const std::string_view> axis_names();

/// The axis of a field of ModelConfig or TrainConfig; "other" for one that no rule names.
std::string_view axis_of(std::string_view field);

/// One field whose value differs.
struct FieldDifference {
  std::string_view axis;
  std::string field;  // "model.norm"
  std::string a, b;   // as in the document
};
/// Where two resolved configurations differ, by axis; names of models do not count.
std::vector<FieldDifference> differences(const RunConfig& a, const RunConfig& b);

}  // namespace tally
