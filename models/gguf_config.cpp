#include "models/gguf_config.h"

#include "core/error.h"
#include "data/json.h"
#include "models/fields_json.h"
#include "models/hf_reader.h"
#include "models/weight_files.h"

namespace tally {
namespace {

/// Lists that describe a model have an element a layer or a head; longer ones are vocabularies.
constexpr size_t kLongestList = 4096;

Json metadata_json(const GgufValue& value, const std::string& what) {
  return std::visit(
      [&](const auto& v) -> Json {
        if constexpr (requires { typename std::remove_cvref_t<decltype(v)>::allocator_type; }) {
          check(v.size() <= kLongestList, what, " is a list of ", v.size(), " elements; at most ",
                kLongestList, " are read");
        }
        return v;
      },
      value);
}

const HfFamily& gguf_family_of(const Gguf& file, const std::string& origin) {
  const GgufValue* value = file.find("general.architecture");
  const auto* name = value ? std::get_if<std::string_view>(value) : nullptr;
  check(name, origin, ": general.architecture must be a text such as \"llama\"");
  std::vector<std::string> known;
  for (const HfFamily& family : gguf_families()) {
    if (family.model_type == *name) return family;
    known.emplace_back(family.model_type);
  }
  fail(origin, ": the architecture ", quoted_name(*name), " is not supported",
       did_you_mean(quoted_name(*name), known));
}

/// What no entry of an architecture says, but would make this something else than one whole model.
void check_general(const Gguf& file, const std::string& origin) {
  const auto only = [&](const char* key, const Json& wanted, const char* why) {
    const GgufValue* value = file.find(key);
    const std::string what = origin + ": " + key;
    check(!value || metadata_json(*value, what) == wanted, what, " is ",
          value ? detail::shown(metadata_json(*value, what)) : "", why);
  };
  only("general.type", "model", "; only a model can be read");
  if (file.find("general.quantization_version"))
    only("general.quantization_version", 2, "; quantised types of version 2 are read");
}

/// The entries of the architecture without its name, and what the tensors say.
Json gguf_document(const GgufFile& file, const HfFamily& family, const std::string& origin) {
  const std::string prefix = std::string(family.model_type) + ".";
  Json document = Json::object();
  for (const auto& [key, value] : file.content().metadata) {
    if (key.starts_with(prefix))
      document[key.substr(prefix.size())] = metadata_json(value, origin + ": " + key);
  }
  const StoredTensor* table = file.find("token_embd.weight");
  check(table && table->shape.size() == 2, origin,
        ": the tensor token_embd.weight is missing or no matrix");
  check(!document.contains("vocab_size") || document["vocab_size"] == table->shape[0], origin, ": ",
        prefix, "vocab_size is ", detail::shown(document.value("vocab_size", Json())),
        "; token_embd.weight has ", table->shape[0], " rows");
  document["vocab_size"] = table->shape[0];
  // Some writers repeat a tied embedding as the head.
  const StoredTensor* head = file.find("output.weight");
  document["tied"] = !head || same_content(*head, *table);
  for (const char* bias : {"attn_q.bias", "attn_output.bias", "ffn_up.bias"})
    document[bias] = file.find("blk.0." + std::string(bias)) != nullptr;
  if (const StoredTensor* factors = file.find("rope_freqs.weight")) {
    check(factors->numel() <= int64_t{kLongestList}, origin, ": rope_freqs.weight is too long");
    std::vector<float> values(static_cast<size_t>(factors->numel()));
    read_values(*factors, std::span<float>(values));
    document["rope_freqs"] = values;
  }
  return document;
}

}  // namespace

HfModel gguf_config(const GgufFile& file, const std::string& origin) {
  const HfFamily& family = gguf_family_of(file.content(), origin);
  check_general(file.content(), origin);
  const Json document = gguf_document(file, family, origin);
  const std::string where = origin + ": " + family.model_type;
  return {&family, HfReader(document, family, where).read()};
}

}  // namespace tally
