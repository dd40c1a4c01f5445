#include "models/hf_config.h"

#include <algorithm>

#include "core/error.h"
#include "data/file.h"
#include "models/fields_json.h"
#include "models/hf_reader.h"

namespace tally {

const std::vector<const HfFamily*>& hf_families() {
  static const std::vector<std::vector<HfFamily>> groups = {
      gpt_families(),    neox_families(),     llama_families(),   gemma_families(),
      phi_families(),    deepseek_families(), encoder_families(), t5_families(),
      hybrid_families(), reference_families()};
  static const std::vector<const HfFamily*> all = [] {
    std::vector<const HfFamily*> list;
    for (const auto& group : groups) {
      for (const HfFamily& family : group) list.push_back(&family);
    }
    return list;
  }();
  return all;
}

const HfFamily& hf_family(std::string_view model_type, const std::string& origin) {
  std::vector<std::string> known;
  for (const HfFamily* family : hf_families()) {
    if (family->model_type == model_type) return *family;
    known.emplace_back(family->model_type);
  }
  fail(origin, ": model_type \"", model_type, "\" is not supported",
       did_you_mean(model_type, known));
}

namespace {

const HfFamily* family_inside(std::string_view model_type) {
  for (const HfFamily* family : hf_families()) {
    if (!family->around.empty() && family->around == model_type) return family;
  }
  return nullptr;
}

/// What the entry text_config of a model around `family` says of it.
ModelConfig text_config(const Json& document, const HfFamily& family, const std::string& origin) {
  Json text = document.value("text_config", Json());
  check(text.is_object(), origin, ": text_config must be an object {...}; it is ",
        detail::shown(text));
  const Json type = text.value("model_type", Json(family.model_type));
  check(type == family.model_type, origin, ": text_config: model_type = ", detail::shown(type),
        " is not supported inside ", std::string(family.around), "; only \"", family.model_type,
        "\" is");
  // Some releases say it once, outside.
  if (!text.contains("tie_word_embeddings") && document.contains("tie_word_embeddings"))
    text["tie_word_embeddings"] = document["tie_word_embeddings"];
  const std::string inside = origin + ": text_config";
  return HfReader(text, family, inside).read();
}

}  // namespace

HfModel hf_config_from_json(std::string_view text, const std::string& origin) {
  const Json document = parse_json(text, origin);
  check(document.is_object(), origin, ": must be an object {...}; it is ", detail::shown(document));
  const Json type = document.value("model_type", Json());
  check(type.is_string(), origin, ": model_type must be a text such as \"llama\"; it is ",
        detail::shown(type));
  if (const HfFamily* family = family_inside(type.get<std::string>()))
    return {family, text_config(document, *family, origin), family->inside};
  const HfFamily& family = hf_family(type.get<std::string>(), origin);
  return {&family, HfReader(document, family, origin).read(), family.prefix};
}

HfModel read_hf_config(const std::string& path) {
  return hf_config_from_json(read_file(path, size_t{1} << 24), path);
}

bool looks_like_hf_config(std::string_view text) {
  try {
    const Json document = parse_json(text, "", true);
    return document.is_object() && document.contains("model_type");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tally
