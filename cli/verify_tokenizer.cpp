#include "cli/verify_tokenizer.h"

#include <filesystem>

#include "core/error.h"
#include "data/file.h"
#include "data/json.h"
#include "data/tokenizer_io.h"
#include "data/tokenizer_train.h"

namespace tally::cli {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

/// A member that must be there.
const Json& recorded(const Json& json, const char* key, const std::string& path) {
  check(json.is_object() && json.contains(key), path, ": has no \"", key, "\"");
  return json[key];
}
std::string recorded_text(const Json& json, const char* key, const std::string& path) {
  const Json& value = recorded(json, key, path);
  check(value.is_string(), path, ": \"", key, "\" must be a text; it is ", value.type_name());
  return value.get<std::string>();
}
template <class T>
T recorded_list(const Json& value, const std::string& path) {
  try {
    return value.get<T>();
  } catch (const Json::exception&) {
    fail(path, ": a list of ids or places is needed; it is ", value.type_name());
  }
}

std::string beside(const std::string& path, const std::string& name) {
  return (fs::path(path).parent_path() / fs::path(name).filename()).string();
}

Tokenizer public_tokenizer(const std::string& name, const std::string& vocabulary,
                           const std::string& path) {
  check(!vocabulary.empty(), path, ": needs the vocabulary ", name,
        "; give --tokenizer with its file, or with the folder that holds it");
  if (!fs::is_directory(vocabulary)) return load_tokenizer(vocabulary);
  for (const char* ending : {"", ".model", ".tiktoken", ".json", ".gguf"}) {
    const std::string file = (fs::path(vocabulary) / (name + ending)).string();
    if (fs::exists(file)) return load_tokenizer(file);
  }
  return load_tokenizer(vocabulary);
}

/// Whether a case's ids come out and go back.
bool same_tokens(const Tokenizer& tokenizer, const Json& c, SpecialTokens special,
                 const std::string& path) {
  const std::string text = recorded_text(c, "text", path);
  const Ids ids = recorded_list<Ids>(recorded(c, "ids", path), path);
  bool ok = tokenizer.encode(text, special) == ids;
  if (c.contains("ids_special_allowed"))
    ok = ok && tokenizer.encode(text, SpecialTokens::allowed) ==
                   recorded_list<Ids>(c["ids_special_allowed"], path);
  if (c.contains("ids_with_post_processor"))
    ok = ok && tokenizer.wrap(ids) == recorded_list<Ids>(c["ids_with_post_processor"], path);
  if (c.contains("decoded"))
    return ok && tokenizer.decode_text(ids) == recorded_text(c, "decoded", path);
  return ok && tokenizer.decode(ids) == (c.contains("decoded_keep_special")
                                             ? recorded_text(c, "decoded_keep_special", path)
                                             : text);
}

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
    out += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

TokenizerReport verify_training(const Json& file, const std::string& path) {
  TokenizerReport report;
  const std::string text = read_file(beside(path, recorded_text(file, "text_file", path)));
  for (const auto& [rule, expected] : recorded(file, "rules", path).items()) {
    TokenizerTrainOptions options;
    options.vocab_size = recorded_list<int64_t>(recorded(file, "vocab_size", path), path);
    options.pattern = recorded_text(file, "pattern_name", path);
    options.special =
        recorded_list<std::vector<std::string>>(recorded(file, "special_tokens", path), path);
    options.tie = tie_rule_by_name(rule);
    TokenizerTrainer trainer(options);
    trainer.add(text);
    const Tokenizer tokenizer = trainer.train();
    Json merges = Json::array();
    for (const Merge& m : tokenizer.spec().merges)
      merges.push_back({hexadecimal(tokenizer.token_bytes(m.left)),
                        hexadecimal(tokenizer.token_bytes(m.right))});
    ++report.cases;
    if (merges != recorded(expected, "merges_hex", path)) report.failed.push_back(rule);
  }
  return report;
}

TokenizerReport verify_cuts(const Json& file, const std::string& path) {
  TokenizerReport report;
  for (const Json& c : recorded(file, "cases", path)) {
    const std::string text = recorded_text(c, "text", path);
    for (const auto& [name, ends] : recorded(c, "ends", path).items()) {
      std::vector<size_t> cuts;
      Pretokenizer(patterns_by_name(name)).split(text, [&](std::string_view piece) {
        cuts.push_back(static_cast<size_t>(piece.data() - text.data()) + piece.size());
      });
      ++report.cases;
      if (cuts != recorded_list<std::vector<size_t>>(ends, path))
        report.failed.push_back(recorded_text(c, "name", path) + ", " + name);
    }
  }
  return report;
}

}  // namespace

TokenizerReport verify_tokenizer(const std::string& path, const std::string& vocabulary) {
  const Json file = read_json(path);
  check(file.is_object(), path, ": an object is needed; given ", file.type_name());
  if (file.contains("text_file")) return verify_training(file, path);
  if (file.contains("patterns")) return verify_cuts(file, path);
  const bool own = file.contains("tokenizer_file");
  const Tokenizer tokenizer =
      own ? load_tokenizer(beside(path, recorded_text(file, "tokenizer_file", path)))
          : public_tokenizer(recorded_text(file, "tokenizer", path), vocabulary, path);
  TokenizerReport report;
  for (const Json& c : recorded(file, "cases", path)) {
    ++report.cases;
    const auto special = own ? SpecialTokens::allowed : SpecialTokens::plain;
    if (!same_tokens(tokenizer, c, special, path))
      report.failed.push_back(recorded_text(c, "name", path));
  }
  return report;
}

}  // namespace tally::cli
