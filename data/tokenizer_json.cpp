// Reads Hugging Face's tokenizer.json: byte-level BPE only, everything else refused by name.
#include <filesystem>

#include "core/error.h"
#include "data/bpe_alphabet.h"
#include "data/json.h"
#include "data/pretokenizer_patterns.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace {

/// One JSON object of the file and where it stands, for messages.
class Section {
 public:
  Section(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    check(json_.is_object(), where_, ": an object is needed; given ", json_.type_name());
  }

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  const Json& at(const char* key) const {
    check(has(key), where_, ": \"", key, "\" is needed; it is missing or null");
    return json_[key];
  }
  Section object(const char* key) const { return Section(at(key), where_ + "." + key); }
  const Json& list(const char* key) const {
    check(at(key).is_array(), where_, ".", key, ": a list is needed; given ", at(key).type_name());
    return json_[key];
  }
  std::string text(const char* key) const {
    check(at(key).is_string(), where_, ".", key, ": a string is needed; given ",
          at(key).type_name());
    return json_[key].get<std::string>();
  }
  bool flag(const char* key, bool otherwise = false) const {
    if (!has(key)) return otherwise;
    check(at(key).is_boolean(), where_, ".", key, ": true or false is needed; given ",
          at(key).dump());
    return json_[key].get<bool>();
  }
  std::string type() const { return text("type"); }
  const std::string& where() const { return where_; }
  const Json& json() const { return json_; }

  [[noreturn]] void refuse(const std::string& what) const {
    fail(where_, ": only byte-level BPE is read; ", what,
         " is not part of it here; convert the file or train a tokenizer");
  }
  void refuse_if(const char* key) const {
    if (flag(key)) refuse("\"" + std::string(key) + "\": true");
  }

 private:
  const Json& json_;
  std::string where_;
};

int64_t read_id(const Json& json, const std::string& where) {
  check(json.is_number_unsigned() && json.get<uint64_t>() < uint64_t{detail::kMaxVocabulary}, where,
        ": an id must be a whole number from 0 to ", detail::kMaxVocabulary - 1, "; given ",
        json.dump());
  return json.get<int64_t>();
}

void read_added(const Section& file, TokenizerSpec& spec) {
  if (!file.has("added_tokens")) return;
  for (const Json& item : file.list("added_tokens")) {
    const Section token(item, file.where() + ".added_tokens");
    AddedToken added{token.text("content"), 0, token.flag("special")};
    for (const char* key : {"single_word", "lstrip", "rstrip"}) token.refuse_if(key);
    const int64_t id = read_id(token.at("id"), token.where());
    added.id = static_cast<TokenId>(id);
    detail::place_token(spec.tokens, id, added.text, token.where());
    spec.added.push_back(std::move(added));
  }
}

void read_vocab(const Section& model, TokenizerSpec& spec) {
  const std::string where = model.where() + ".vocab";
  const std::vector<std::string> added = spec.tokens;
  for (const auto& [text, id_json] : model.object("vocab").json().items()) {
    const int64_t id = read_id(id_json, where + "[\"" + text + "\"]");
    const auto at = static_cast<size_t>(id);
    if (at < added.size() && !added[at].empty()) {  // the vocabulary may list added tokens again
      check(added[at] == text, where, ": every id must be used once; id ", id, " is \"", text,
            "\" and the added token \"", added[at], "\"");
      continue;
    }
    auto bytes = from_alphabet(text);
    check(bytes.has_value(), where, ": tokens must be spelled in GPT-2's alphabet of bytes; \"",
          text, "\" is not; this is not a byte-level tokenizer");
    detail::place_token(spec.tokens, id, std::move(*bytes), where);
  }
}

void read_merges(const Section& model, TokenizerSpec& spec) {
  const TokenIndex index(spec.tokens);
  const Json& merges = model.list("merges");
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& m = merges[i];
    const std::string where = model.where() + ".merges, number " + std::to_string(i + 1);
    if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
      const auto &left = m[0].get_ref<const std::string&>(),
                 &right = m[1].get_ref<const std::string&>();
      spec.merges.push_back(detail::make_merge(index, left, right, where));
      continue;
    }
    const std::string text = m.is_string() ? m.get<std::string>() : "";
    const size_t blank = text.find(' ');
    check(blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos, where,
          ": a merge must be \"left right\" or [\"left\", \"right\"]; given ", m.dump());
    const std::string_view sides = text;
    spec.merges.push_back(
        detail::make_merge(index, sides.substr(0, blank), sides.substr(blank + 1), where));
  }
}

void read_model(const Section& file, TokenizerSpec& spec) {
  const Section model = file.object("model");
  // Older files leave the type out where it is BPE.
  if (model.has("type") && model.type() != "BPE") model.refuse("the model type " + model.type());
  if (model.has("dropout") && model.at("dropout") != 0.0) model.refuse("dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.has(key) && !model.text(key).empty()) model.refuse(key);
  }
  model.refuse_if("byte_fallback");
  spec.whole_pieces_first = model.flag("ignore_merges");
  read_vocab(model, spec);
  read_merges(model, spec);
}

std::string quote_literal(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.[|()?*+{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string read_split(const Section& split) {
  const Section pattern = split.object("pattern");
  const std::string regex =
      pattern.has("Regex") ? pattern.text("Regex") : quote_literal(pattern.text("String"));
  const std::string behavior = split.text("behavior");
  const bool inverted = split.flag("invert");
  if (behavior == "Isolated" && !inverted) return regex;
  // Dropping what lies between the matches is the same where nothing can: these cover any text.
  const bool covers = name_of_patterns({regex}) != "custom";
  if (behavior == "Removed" && inverted && covers) return regex;
  split.refuse("the behavior " + behavior + (inverted ? " (inverted)" : ""));
}

/// Appends the patterns of one pre-tokenizer; true if it was the ByteLevel one, which must be last.
bool read_pretokenizer(const Section& pre, std::vector<std::string>& patterns) {
  const std::string type = pre.type();
  if (type == "Sequence") {
    const Json& parts = pre.list("pretokenizers");
    bool done = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Section part(parts[i], pre.where() + "[" + std::to_string(i) + "]");
      if (done) part.refuse("a pre-tokenizer after ByteLevel");
      done = read_pretokenizer(part, patterns);
    }
    return done;
  }
  if (type == "ByteLevel") {
    pre.refuse_if("add_prefix_space");
    if (pre.flag("use_regex", true)) patterns.emplace_back(kGpt2Pattern);
    return true;
  }
  if (type == "Digits") {
    patterns.emplace_back(std::string(kDigitPattern) + (pre.flag("individual_digits") ? "" : "+"));
  } else if (type == "Split") {
    patterns.push_back(read_split(pre));
  } else {
    pre.refuse("the pre-tokenizer " + type);
  }
  return false;
}

void read_template(const Section& post, TokenizerSpec& spec) {
  const std::string type = post.type();
  if (type == "Sequence") {
    for (const Json& part : post.list("processors")) {
      read_template(Section(part, post.where()), spec);
    }
  } else if (type == "TemplateProcessing") {
    bool seen_text = false;
    for (const Json& item : post.list("single")) {
      const Section piece(item, post.where() + ".single");
      if (piece.has("Sequence")) {
        seen_text = true;
        continue;
      }
      const std::string name = piece.object("SpecialToken").text("id");
      const Section entry = post.object("special_tokens").object(name.c_str());
      for (const Json& id : entry.list("ids")) {
        (seen_text ? spec.suffix : spec.prefix)
            .push_back(static_cast<TokenId>(read_id(id, entry.where())));
      }
    }
  } else if (type != "ByteLevel") {  // ByteLevel's trims offsets, which are not given here
    post.refuse("the post-processor " + type);
  }
}

void refuse_unsupported(const Section& file) {
  if (file.has("normalizer")) {
    const Section normalizer = file.object("normalizer");
    const bool nothing = normalizer.type() == "Sequence" && normalizer.list("normalizers").empty();
    if (!nothing) normalizer.refuse("the normalizer " + normalizer.type());
  }
  if (file.has("decoder") && file.object("decoder").type() != "ByteLevel") {
    file.object("decoder").refuse("the decoder " + file.object("decoder").type());
  }
}

/// tokenizer_config.json says which token ends a text; there it is a string or an object.
std::optional<TokenId> configured_eot(const Json& config, const TokenizerSpec& spec) {
  if (!config.is_object() || !config.contains("eos_token")) return std::nullopt;
  const Json& eos = config["eos_token"];
  const Json& name = eos.is_object() && eos.contains("content") ? eos["content"] : eos;
  for (const AddedToken& t : spec.added) {
    if (name.is_string() && name == t.text) return t.id;
  }
  return std::nullopt;
}

Tokenizer tokenizer_from_json(const Json& json, const std::string& path, const Json& config) {
  const Section file(json, path);
  TokenizerSpec spec;
  refuse_unsupported(file);
  read_added(file, spec);
  read_model(file, spec);
  if (!file.has("pre_tokenizer")) file.refuse("a file without a pre_tokenizer");
  if (!read_pretokenizer(file.object("pre_tokenizer"), spec.patterns)) {
    file.object("pre_tokenizer").refuse("a pre-tokenizer that does not end in ByteLevel");
  }
  if (file.has("post_processor")) read_template(file.object("post_processor"), spec);
  spec.eot = configured_eot(config, spec);
  if (!spec.eot) spec.eot = detail::guess_eot(spec.added);
  try {
    return Tokenizer(std::move(spec));
  } catch (const Error& e) {
    fail(path, ": ", e.what());
  }
}

}  // namespace

Tokenizer load_tokenizer_json(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path config = fs::path(path).parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  return tokenizer_from_json(read_json(path), path,
                             fs::exists(config, ignored) ? read_json(config) : Json());
}

Tokenizer parse_tokenizer_json(std::string_view text, const std::string& origin) {
  return tokenizer_from_json(parse_json(text, origin), origin, Json());
}

}  // namespace tally
