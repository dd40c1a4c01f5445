#include "models/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "models/fields_json.h"

namespace tally {
namespace {

using detail::shown;

struct RopeType {
  const char* name;
  RopeScale scaling;
  std::vector<const char*> required, optional;
};
const std::vector<RopeType>& rope_types() {
  static const std::vector<RopeType> list = {
      {"default", RopeScale::none, {}, {}},
      {"linear", RopeScale::linear, {"factor"}, {}},
      {"dynamic", RopeScale::dynamic_ntk, {"factor"}, {"original_max_position_embeddings"}},
      {"yarn",
       RopeScale::yarn,
       {"factor"},
       {"original_max_position_embeddings", "beta_fast", "beta_slow", "truncate",
        "attention_factor", "mscale", "mscale_all_dim"}},
      {"llama3",
       RopeScale::llama3,
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
       {}},
      {"longrope",
       RopeScale::longrope,
       {"short_factor", "long_factor", "original_max_position_embeddings"},
       {"factor", "attention_factor"}},
      {"proportional", RopeScale::proportional, {"partial_rotary_factor"}, {}}};
  return list;
}

struct RopeEntry {
  const char* key;
  const char* field;
};
constexpr RopeEntry kRopeEntries[] = {{"factor", "rope_factor"},
                                      {"original_max_position_embeddings", "rope_original_context"},
                                      {"low_freq_factor", "rope_low_frequency"},
                                      {"high_freq_factor", "rope_high_frequency"},
                                      {"beta_fast", "rope_beta_fast"},
                                      {"beta_slow", "rope_beta_slow"},
                                      {"truncate", "rope_truncate"},
                                      {"attention_factor", "rope_attention_factor"},
                                      {"mscale", "rope_mscale"},
                                      {"mscale_all_dim", "rope_mscale_all_dim"},
                                      {"short_factor", "rope_short_factors"},
                                      {"long_factor", "rope_long_factors"},
                                      {"partial_rotary_factor", "rope_fraction"}};

bool switches_nothing_on(const Json& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

const RopeType& rope_type_of(const Json& rope, const std::string& where) {
  const RopeType* found = &rope_types()[0];
  for (const char* key : {"rope_type", "type"}) {
    if (!rope.contains(key) || rope[key].is_null()) continue;
    std::vector<std::string> known;
    const RopeType* named = nullptr;
    for (const RopeType& type : rope_types()) {
      known.emplace_back(type.name);
      if (rope[key] == type.name) named = &type;
    }
    check(named, where, ": ", key, " = ", shown(rope[key]), " is not supported",
          rope[key].is_string() ? did_you_mean(rope[key].get<std::string>(), known) : "");
    found = named;
  }
  return *found;
}

bool takes_entry(const std::vector<const char*>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::optional<double> read_hf_rope(const Json& rope, const std::string& where, ModelConfig& c) {
  check(rope.is_object(), where, " must be an object; it is ", shown(rope));
  const RopeType& type = rope_type_of(rope, where);
  for (const char* key : type.required) {
    check(rope.contains(key) && !switches_nothing_on(rope[key]), where, ": ", key, " is missing; ",
          type.name, " needs it");
  }
  std::optional<double> base;
  for (const auto& [key, value] : rope.items()) {
    if (key == "rope_type" || key == "type" || switches_nothing_on(value)) continue;
    if (key == "partial_rotary_factor" && value == 1.0) continue;
    if (key == "rope_theta") {
      check(value.is_number(), where, ": rope_theta must be a number; it is ", shown(value));
      base = value.get<double>();
      continue;
    }
    check(takes_entry(type.required, key) || takes_entry(type.optional, key), where, ": ",
          Json(key).dump(), " = ", shown(value), " is not supported for the type ", type.name);
    const auto entry = std::find_if(std::begin(kRopeEntries), std::end(kRopeEntries),
                                    [&key = key](const RopeEntry& e) { return key == e.key; });
    detail::set_field(c, detail::find_field(model_fields(), entry->field, where), value,
                      where + ": " + key);
  }
  // "truncate": false switches something on.
  if (takes_entry(type.optional, "truncate") && rope.contains("truncate") &&
      rope["truncate"] == false)
    c.rope_truncate = false;
  if (type.scaling == RopeScale::none) return base;
  c.rope_scaling = type.scaling;
  if (c.rope_original_context == 0) c.rope_original_context = c.context;
  if (type.scaling == RopeScale::dynamic_ntk) {
    c.rope_original_context = c.context;
    c.context = static_cast<int64_t>(std::ceil(static_cast<double>(c.context) * c.rope_factor));
  }
  if (type.scaling == RopeScale::longrope && !rope.contains("factor"))
    c.rope_factor = static_cast<double>(c.context) / static_cast<double>(c.rope_original_context);
  return base;
}

Json write_hf_rope(const ModelConfig& c) {
  Json rope = Json::object();
  for (const RopeType& type : rope_types()) {
    if (type.scaling != c.rope_scaling || type.scaling == RopeScale::none) continue;
    rope["rope_type"] = type.name;
    const ModelConfig plain;
    for (const RopeEntry& entry : kRopeEntries) {
      const bool required = takes_entry(type.required, entry.key);
      if (!required && !takes_entry(type.optional, entry.key)) continue;
      const auto& field = detail::find_field(model_fields(), entry.field, "export");
      const Json value = detail::field_value(c, field);
      if (required || value != detail::field_value(plain, field)) rope[entry.key] = value;
    }
  }
  return rope;
}

}  // namespace tally
