#include "models/zoo.h"

#include "core/error.h"
#include "models/suggest.h"
#include "models/zoo_rows.h"

namespace tally {
namespace {

std::vector<Preset> make_presets() {
  std::vector<Preset> all = zoo::own_presets();
  const std::vector<zoo::Family> lists[] = {zoo::encoder_families(),  zoo::gpt_families(),
                                            zoo::parallel_families(), zoo::llama_families(),
                                            zoo::small_families(),    zoo::qwen_families(),
                                            zoo::gemma_families(),    zoo::stable_families(),
                                            zoo::latent_families(),   zoo::hybrid_families()};
  for (const auto& list : lists) {
    for (const zoo::Family& family : list) zoo::add(all, family);
  }
  for (const auto& list : lists) {
    for (const zoo::Family& family : list) zoo::add_scaled_down(all, family);
  }
  return all;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

const Preset* find_preset_or_null(std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

const Preset& find_preset(std::string_view name) {
  if (const Preset* found = find_preset_or_null(name)) return *found;
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  const std::string best = closest(name, names);
  fail("there is no preset \"", name, "\"; ",
       best.empty() ? "`tally models` lists them" : "did you mean \"" + best + "\"?");
}

}  // namespace tally
