// The tokenizer inside a GGUF file (tokenizer.ggml.*).
#include <algorithm>

#include "core/error.h"
#include "data/bpe_alphabet.h"
#include "data/file.h"
#include "data/gguf.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace {

/// ggml's kinds of tokens.
struct TokenKind {
  enum : int64_t { normal = 1, unknown, control, user_defined, unused, byte };
};

/// Entries of tokenizer.ggml by type.
class GgufTokens {
 public:
  GgufTokens(const Gguf& file, const std::string& origin) : file_(file), origin_(origin) {}

  std::string where(const std::string& key) const { return origin_ + ": tokenizer.ggml." + key; }

  /// nullptr where the entry is absent.
  template <class T>
  const T* find(const std::string& key, const char* what) const {
    const GgufValue* value = file_.find("tokenizer.ggml." + key);
    const T* found = value ? std::get_if<T>(value) : nullptr;
    check(!value || found, where(key), " must be ", what);
    return found;
  }
  std::string text(const std::string& key) const {
    const auto* value = find<std::string_view>(key, "a text");
    return value ? std::string(*value) : "";
  }
  bool flag(const std::string& key, bool otherwise) const {
    const auto* value = find<bool>(key, "true or false");
    return value ? *value : otherwise;
  }
  std::optional<TokenId> id(const std::string& key) const {
    const auto* value = find<int64_t>(key, "a whole number");
    if (!value) return std::nullopt;
    check(*value >= 0 && *value < static_cast<int64_t>(tokens().size()), where(key), " = ", *value,
          " must be the id of one of the ", tokens().size(), " tokens");
    return static_cast<TokenId>(*value);
  }
  const std::vector<std::string_view>& texts(const std::string& key) const {
    const auto* value = find<std::vector<std::string_view>>(key, "a list of texts");
    check(value, where(key), " is missing");
    return *value;
  }
  const std::vector<std::string_view>& tokens() const { return texts("tokens"); }
  /// The kind of each token.
  std::vector<int64_t> kinds() const {
    const auto* kinds = find<std::vector<int64_t>>("token_type", "a list of whole numbers");
    if (!kinds) return std::vector<int64_t>(tokens().size(), TokenKind::normal);
    check(kinds->size() == tokens().size(), where("token_type"), " has ", kinds->size(),
          " elements for ", tokens().size(), " tokens");
    for (const int64_t kind : *kinds) {
      check(kind >= TokenKind::normal && kind <= TokenKind::byte, where("token_type"), ": ", kind,
            " is no kind of token; 1 to 6 are");
    }
    return *kinds;
  }
  std::string_view architecture() const {
    const GgufValue* value = file_.find("general.architecture");
    const auto* name = value ? std::get_if<std::string_view>(value) : nullptr;
    return name ? *name : std::string_view();
  }

 private:
  const Gguf& file_;
  const std::string& origin_;
};

/// What tokenizer.ggml.pre calls the pre-tokenizers that are read, and what they are called here.
constexpr std::pair<std::string_view, const char*> kPreTokenizers[] = {
    {"gpt-2", "gpt2"},       {"gpt2", "gpt2"},
    {"phi-2", "gpt2"},       {"mpt", "gpt2"},
    {"olmo", "gpt2"},        {"jais", "gpt2"},
    {"smollm", "smollm"},    {"starcoder", "smollm"},
    {"refact", "smollm"},    {"command-r", "smollm"},
    {"codeshell", "smollm"}, {"exaone", "smollm"},
    {"llama-bpe", "llama3"}, {"llama3", "llama3"},
    {"llama-v3", "llama3"},  {"falcon3", "llama3"},
    {"smaug-bpe", "llama3"}, {"dbrx", "llama3"},
    {"qwen2", "qwen2"},      {"stablelm2", "qwen2"},
    {"hunyuan", "qwen2"},    {"deepseek-r1-qwen", "qwen2"},
    {"gpt-4o", "o200k"}};

/// The name of the pattern. Files of GPT-2 are older than the entry; for others it must be there,
/// since every pattern gives other ids.
std::string pattern_of(const GgufTokens& entries) {
  std::string pre = entries.text("pre");
  if (pre.empty() && entries.architecture() == "gpt2") pre = "gpt-2";
  check(!pre.empty(), entries.where("pre"), " is missing: what cuts the text is not known");
  for (const auto& [theirs, ours] : kPreTokenizers) {
    if (theirs == pre) return ours;
  }
  fail(entries.where("pre"), ": the pre-tokenizer ", quoted_name(pre), " is not supported");
}

TokenizerSpec read_byte_level(const GgufTokens& entries) {
  TokenizerSpec spec;
  const auto& tokens = entries.tokens();
  const std::vector<int64_t> kinds = entries.kinds();
  const std::string at = entries.where("tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string text(tokens[i]);
    const auto id = static_cast<TokenId>(i);
    if (kinds[i] == TokenKind::control || kinds[i] == TokenKind::user_defined) {
      spec.added.push_back({text, id, kinds[i] == TokenKind::control});
    } else {
      auto bytes = from_alphabet(text);
      check(bytes.has_value(), at, ": tokens must be spelled in GPT-2's alphabet of bytes; ",
            quoted_name(text), " is not");
      text = std::move(*bytes);
    }
    detail::place_token(spec.tokens, int64_t{id}, std::move(text), at);
  }
  const TokenIndex index(spec.tokens);
  const auto& merges = entries.texts("merges");
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string where = entries.where("merges") + ", number " + std::to_string(i + 1);
    const size_t blank = merges[i].find(' ');
    check(blank != std::string_view::npos, where, ": a merge must be two tokens parted by a blank");
    spec.merges.push_back(
        detail::make_merge(index, merges[i].substr(0, blank), merges[i].substr(blank + 1), where));
  }
  const std::string pattern = pattern_of(entries);
  spec.patterns = patterns_by_name(pattern);
  spec.whole_pieces_first = pattern == "llama3";
  return spec;
}

/// "llama": SentencePiece's BPE; "t5": its unigram.
TokenizerSpec read_sentence_piece(const GgufTokens& entries, bool unigram) {
  SentencePieceSpec model;
  const auto& tokens = entries.tokens();
  const std::vector<int64_t> kinds = entries.kinds();
  const auto* scores = entries.find<std::vector<double>>("scores", "a list of numbers");
  check(scores && scores->size() == tokens.size(), entries.where("scores"),
        " must have a number for each of the ", tokens.size(), " tokens");
  const bool has_unknown = std::ranges::count(kinds, int64_t{TokenKind::unknown}) > 0;
  const std::optional<TokenId> unknown = entries.id("unknown_token_id");
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto kind = static_cast<PieceKind>(kinds[i]);
    if (!has_unknown && unknown == TokenId(i)) kind = PieceKind::unknown;
    model.pieces.push_back({std::string(tokens[i]), static_cast<float>((*scores)[i]), kind});
  }
  model.unigram = unigram;
  model.byte_fallback = std::ranges::count(kinds, int64_t{TokenKind::byte}) > 0;
  model.add_dummy_prefix = entries.flag("add_space_prefix", true);
  model.remove_extra_whitespaces = entries.flag("remove_extra_whitespaces", false);
  if (const auto* map = entries.find<std::vector<int64_t>>("precompiled_charsmap", "bytes")) {
    for (const int64_t byte : *map) model.characters += static_cast<char>(byte);
  }
  return detail::sentence_piece_tokens(std::move(model));
}

/// Begin and end of text.
void read_ends(const GgufTokens& entries, bool begins, TokenizerSpec& spec) {
  const auto bos = entries.id("bos_token_id"), eos = entries.id("eos_token_id");
  if (entries.flag("add_bos_token", begins) && bos) spec.prefix.push_back(*bos);
  if (entries.flag("add_eos_token", false) && eos) spec.suffix.push_back(*eos);
  spec.eot = eos ? eos : detail::guess_eot(spec.added);
}

}  // namespace

Tokenizer parse_gguf_tokenizer(const Gguf& file, const std::string& origin) {
  const GgufTokens entries(file, origin);
  const std::string model = entries.text("model");
  check(!model.empty(), entries.where("model"), " is missing: there is no tokenizer in this file");
  check(model == "gpt2" || model == "llama" || model == "t5", entries.where("model"),
        ": the kind of tokenizer ", quoted_name(model),
        " is not supported; gpt2, llama and t5 are");
  try {
    TokenizerSpec spec =
        model == "gpt2" ? read_byte_level(entries) : read_sentence_piece(entries, model == "t5");
    read_ends(entries, spec.whole_pieces_first || model == "llama", spec);
    return Tokenizer(std::move(spec));
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with(origin)) throw;
    fail(origin, ": ", e.what());
  }
}

Tokenizer load_gguf_tokenizer(const std::string& path) {
  const MappedFile file(path);
  return parse_gguf_tokenizer(parse_gguf(file.bytes(), path), path);
}

}  // namespace tally
