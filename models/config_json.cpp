#include "models/config_json.h"

#include <vector>

#include "core/error.h"
#include "data/file.h"
#include "models/fields_json.h"

namespace tally {
namespace {

using detail::field_names;
using detail::field_value;
using detail::find_field;
using detail::set_field;
using detail::shown;

template <class S>
void read_section(S& values, std::span<const Field<S>> fields, const Json& section,
                  const std::string& where) {
  check(section.is_object(), where, " must be an object {...}; it is ", shown(section));
  for (const auto& [name, value] : section.items()) {
    set_field(values, find_field(fields, name, where), value, where + "." + name);
  }
}

template <class S>
std::string section_text(const S& values, std::span<const Field<S>> fields) {
  std::string text;
  for (const auto& field : fields) {
    text += text.empty() ? "" : ",\n";
    text += "    \"" + std::string(field.name) + "\": " +
            field_value(values, field).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return "{\n" + text + "\n  }";
}

/// What stands after the "=" of an override, as JSON; a bare word is a text.
Json override_value(std::string_view text) {
  try {
    return parse_json(text, "value");
  } catch (const Error&) {
    return Json(std::string(text));
  }
}

/// "a,b" as a list of what `item` makes of each.
template <class F>
Json comma_separated(std::string_view text, F&& item) {
  Json list = Json::array();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    list.push_back(item(std::string(text.substr(0, comma))));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

template <class S>
void override_field(S& values, std::span<const Field<S>> fields, const std::string& section,
                    std::string_view name, std::string_view text) {
  const Field<S>& field = find_field(fields, name, "--set " + section);
  const bool is_text = std::holds_alternative<std::string S::*>(field.member) ||
                       std::holds_alternative<EnumMember<S>>(field.member);
  Json value = override_value(text);
  if (std::holds_alternative<std::vector<std::string> S::*>(field.member) && !value.is_array())
    value = comma_separated(text, [](const std::string& word) { return Json(word); });
  if (std::holds_alternative<std::vector<double> S::*>(field.member) && !value.is_array())
    value = comma_separated(text, override_value);
  if (is_text && !value.is_string()) value = std::string(text);
  set_field(values, field, value, "--set " + section + "." + std::string(name));
}

/// Where a name without its section, or of another one, may have been meant to point.
[[noreturn]] void refuse_path(std::string_view path) {
  std::vector<std::string> all;
  for (const auto& name : field_names(model_fields())) all.push_back("model." + name);
  for (const auto& name : field_names(train_fields())) all.push_back("train." + name);
  for (const auto& full : all) {
    if (full.substr(full.find('.') + 1) == path) {
      fail("--set: there is no field \"", path, "\"; did you mean \"", full, "\"?");
    }
  }
  const std::string best = closest(path, all);
  fail("--set: there is no field \"", path, "\"; ",
       best.empty() ? "a field is model.NAME or train.NAME; `tally models NAME` lists them"
                    : "did you mean \"" + best + "\"?");
}

template <class S>
std::string reference_table(std::span<const Field<S>> fields) {
  const S defaults;
  std::string text = "| field | default | range | meaning |\n|---|---|---|---|\n";
  for (const auto& field : fields) {
    const bool is_number = std::holds_alternative<int64_t S::*>(field.member) ||
                           std::holds_alternative<double S::*>(field.member);
    text += "| `" + std::string(field.name) + "` | `" + field_value(defaults, field).dump() +
            "` | " + (is_number ? to_text(field.min) + " to " + to_text(field.max) : "") + " | " +
            field.doc + " |\n";
  }
  return text;
}

}  // namespace

std::string to_json_text(const RunConfig& config) {
  return "{\n  \"model\": " + section_text(config.model, model_fields()) +
         ",\n  \"train\": " + section_text(config.train, train_fields()) + "\n}\n";
}

std::string to_json_text(const ModelConfig& model) { return section_text(model, model_fields()); }

RunConfig run_config_from_json(std::string_view text, const std::string& origin) {
  const Json document = parse_json(text, origin, true);
  check(document.is_object(), origin,
        ": must be an object {\"model\": {...}, \"train\": {...}}; it is ", shown(document));
  RunConfig config;
  for (const auto& [name, section] : document.items()) {
    const std::string where = origin + ": " + name;
    if (name == "model") {
      read_section(config.model, model_fields(), section, where);
    } else if (name == "train") {
      read_section(config.train, train_fields(), section, where);
    } else {
      const std::vector<std::string> sections = {"model", "train"};
      fail(origin, ": there is no section \"", name, "\"", did_you_mean(name, sections));
    }
  }
  check(document.contains("model"), origin, ": the section \"model\" is missing");
  return config;
}

std::vector<std::string> changed_train_fields(std::string_view text, const std::string& origin) {
  const TrainConfig plain, given = run_config_from_json(text, origin).train;
  std::vector<std::string> names;
  for (const auto& field : train_fields()) {
    if (!same_value(field, plain, given)) names.emplace_back(field.name);
  }
  return names;
}

RunConfig load_run_config(const std::string& path) {
  return run_config_from_json(read_file(path, size_t{1} << 24), path);
}

void apply_override(RunConfig& config, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  check(equals != std::string_view::npos, "--set ", assignment,
        ": a field and its value are needed, such as --set model.d_model=256");
  const std::string_view path = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  if (path.starts_with("model.")) {
    override_field(config.model, model_fields(), "model", path.substr(6), text);
  } else if (path.starts_with("train.")) {
    override_field(config.train, train_fields(), "train", path.substr(6), text);
  } else {
    refuse_path(path);
  }
}

std::string field_reference() {
  return "### model\n\n" + reference_table(model_fields()) + "\n### train\n\n" +
         reference_table(train_fields());
}

}  // namespace tally
