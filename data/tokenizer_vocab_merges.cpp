// GPT-2's two files: vocab.json (token text -> id) and merges.txt ("left right" a line).
#include "core/error.h"
#include "data/bpe_alphabet.h"
#include "data/file.h"
#include "data/json.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace {

void read_vocab(const Json& vocab, const std::string& path, TokenizerSpec& spec) {
  check(vocab.is_object() && !vocab.empty(), path,
        ": an object of tokens and their ids is needed; given ", vocab.type_name());
  for (const auto& [text, id] : vocab.items()) {
    check(id.is_number_unsigned() && id.get<uint64_t>() < uint64_t{detail::kMaxVocabulary}, path,
          ": an id must be a whole number from 0 to ", detail::kMaxVocabulary - 1, "; \"", text,
          "\" has ", id.dump());
    auto bytes = from_alphabet(text);
    check(bytes.has_value(), path, ": tokens must be spelled in GPT-2's alphabet of bytes; \"",
          text, "\" is not; this is not a byte-level vocabulary");
    detail::place_token(spec.tokens, id.get<int64_t>(), std::move(*bytes), path);
  }
}

void read_merges(std::string_view text, const std::string& path, TokenizerSpec& spec) {
  const TokenIndex index(spec.tokens);
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::string where = path + ", line " + std::to_string(number);
    const size_t blank = line.find(' ');
    check(blank != std::string_view::npos && line.find(' ', blank + 1) == std::string_view::npos,
          where, ": a merge must be two tokens parted by one blank; given \"", line, "\"");
    spec.merges.push_back(
        detail::make_merge(index, line.substr(0, blank), line.substr(blank + 1), where));
  }
}

/// These files do not say which tokens are special: those like <...> that no merge gives.
void find_special(TokenizerSpec& spec) {
  std::vector<bool> reached(spec.tokens.size());
  for (const Merge& m : spec.merges) reached[m.result] = true;
  for (TokenId id = 0; id < spec.tokens.size(); ++id) {
    const std::string& t = spec.tokens[id];
    if (!reached[id] && t.size() > 2 && t.front() == '<' && t.back() == '>') {
      spec.added.push_back({t, id, true});
    }
  }
}

}  // namespace

Tokenizer load_vocab_merges(const std::string& vocab_path, const std::string& merges_path,
                            const TokenizerLoadOptions& options) {
  return parse_vocab_merges({read_file(vocab_path, size_t{256} << 20), vocab_path},
                            {read_file(merges_path), merges_path}, options);
}

Tokenizer parse_vocab_merges(const NamedText& vocab, const NamedText& merges,
                             const TokenizerLoadOptions& options) {
  TokenizerSpec spec;
  read_vocab(parse_json(vocab.text, vocab.origin), vocab.origin, spec);
  read_merges(merges.text, merges.origin, spec);
  find_special(spec);
  spec.patterns = patterns_by_name(options.pattern.empty() ? "gpt2" : options.pattern);
  spec.eot = detail::guess_eot(spec.added);
  try {
    return Tokenizer(std::move(spec));
  } catch (const Error& e) {
    fail(vocab.origin, ": ", e.what());
  }
}

}  // namespace tally
