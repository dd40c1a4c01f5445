#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"

namespace tally {

/// A named model: its configuration, where its numbers come from and what it can show.
struct Preset {
  std::string name, family;
  int year;
  std::string source;
  std::string shows;             // numbers of the lecture's claims that this model illustrates
  RunConfig config;              // fields that follow from others are left to resolve()
  std::string note = {};         // what the configuration says otherwise than the model, and why
  std::string unpublished = {};  // fields whose value is ours: "train.lr train.weight_decay"
  bool scaled_down = false;      // a published family's block in a size that trains here
};

/// Every preset: ours, smallest first, then published models by family, then the scaled-down ones.
const std::vector<Preset>& presets();

/// The preset of that name. Throws Error with a did-you-mean.
const Preset& find_preset(std::string_view name);
/// The same, or nullptr.
const Preset* find_preset_or_null(std::string_view name);

}  // namespace tally
