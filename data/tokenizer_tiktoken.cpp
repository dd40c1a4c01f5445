// tiktoken's rank files: a line for each token, "base64-of-its-bytes rank".
#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.h"
#include "data/file.h"
#include "data/tokenizer_io.h"

namespace tally {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Nothing but whole groups of four, padded at the end, is base64 here.
std::optional<std::string> from_base64(std::string_view text) {
  static const std::array<int8_t, 256> values = [] {
    std::array<int8_t, 256> v{};
    v.fill(-1);
    for (size_t i = 0; i < kBase64.size(); ++i) {
      v[static_cast<uint8_t>(kBase64[i])] = static_cast<int8_t>(i);
    }
    return v;
  }();
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() - padding; ++i) {
    const int8_t value = values[static_cast<uint8_t>(text[i])];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 0) out += static_cast<char>(bits >> (6 - 2 * (i % 4)));
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kBase64[bits >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

std::vector<std::string> read_ranks(std::string_view text, const std::string& path) {
  check(!text.empty(), path, ": a rank file must have a line for each token; the file is empty");
  std::vector<std::string> tokens;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string where = path + ", line " + std::to_string(number);
    const size_t blank = std::min(line.find(' '), line.size());
    auto bytes = from_base64(line.substr(0, blank));
    check(bytes.has_value(), where, ": a line must be a token in base64, a blank and a rank; ",
          "the token is not base64; if this is a SentencePiece model: that kind is not read");
    int64_t rank = -1;
    const char* stop = line.data() + line.size();
    const auto parsed = std::from_chars(std::min(line.data() + blank + 1, stop), stop, rank);
    check(parsed.ec == std::errc() && parsed.ptr == stop && rank >= 0, where,
          ": a rank must be a whole number, 0 or more; given \"",
          line.substr(std::min(blank + 1, line.size())), "\"");
    detail::place_token(tokens, rank, std::move(*bytes), where);
  }
  check(!tokens.empty(), path, ": a rank file must have a line for each token; it has none");
  const TokenIndex index(tokens);
  for (TokenId id = 0; id < tokens.size(); ++id) {
    check(tokens[id].empty() || index.find(tokens[id]) == id, path,
          ": every token must have one rank; ranks ", index.find(tokens[id]), " and ", id,
          " are the same bytes");
  }
  return tokens;
}

/// The two parts that BPE with the rules so far makes of a token; false if there are not two.
bool last_two_parts(const std::string& token, const std::array<TokenId, 256>& bytes,
                    const PairRules& rules, std::vector<TokenId>& parts) {
  parts.clear();
  for (const char c : token) parts.push_back(bytes[static_cast<uint8_t>(c)]);
  while (parts.size() > 2) {
    size_t best = 0;
    PairRules::Rule rule;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const PairRules::Rule r = rules.find(parts[i], parts[i + 1]);
      if (r.rank < rule.rank) {
        rule = r;
        best = i;
      }
    }
    if (rule.rank == UINT32_MAX) return false;
    parts[best] = rule.result;
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  return parts.size() == 2 && rules.find(parts[0], parts[1]).rank == UINT32_MAX;
}

/// One merge a token, if every token is what BPE makes of it: then no other pair of its halves
/// ever meets. False if some token is not.
bool merges_of_bpe(const std::vector<std::string>& tokens, std::vector<Merge>& merges) {
  std::array<TokenId, 256> bytes;
  bytes.fill(kNoToken);
  for (TokenId id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() == 1) bytes[static_cast<uint8_t>(tokens[id][0])] = id;
  }
  if (std::find(bytes.begin(), bytes.end(), kNoToken) != bytes.end()) return false;
  PairRules rules;
  std::vector<TokenId> parts;
  for (TokenId id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() < 2) continue;
    if (!last_two_parts(tokens[id], bytes, rules, parts)) return false;
    rules.add(parts[0], parts[1], {id, id});
    merges.push_back({parts[0], parts[1], id});
  }
  return true;
}

/// All ways to put a token together from two others, in the order of its rank.
std::vector<Merge> merges_of_all_halves(const std::vector<std::string>& tokens) {
  const TokenIndex index(tokens);
  std::vector<Merge> merges;
  for (TokenId id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const TokenId left = index.find(token.substr(0, cut)), right = index.find(token.substr(cut));
      if (left != kNoToken && right != kNoToken) merges.push_back({left, right, id});
    }
  }
  return merges;
}

struct Encoding {  // published with tiktoken, known by its number of ranks
  size_t ranks;
  const char* pattern;
  std::vector<AddedToken> special;
};

std::vector<AddedToken> llama3_special() {
  std::vector<AddedToken> tokens;
  int reserved = 0;
  for (TokenId i = 0; i < 256; ++i) {
    const char* name = i == 0   ? "begin_of_text"
                       : i == 1 ? "end_of_text"
                       : i == 6 ? "start_header_id"
                       : i == 7 ? "end_header_id"
                       : i == 9 ? "eot_id"
                                : nullptr;
    const std::string text =
        name != nullptr ? name : "reserved_special_token_" + std::to_string(reserved++);
    tokens.push_back({"<|" + text + "|>", 128000 + i});
  }
  return tokens;
}

Encoding known_encoding(size_t ranks) {
  switch (ranks) {
    case 50256:
      return {ranks, "gpt2", {{"<|endoftext|>", 50256}}};
    case 100256:
      return {ranks,
              "cl100k",
              {{"<|endoftext|>", 100257},
               {"<|fim_prefix|>", 100258},
               {"<|fim_middle|>", 100259},
               {"<|fim_suffix|>", 100260},
               {"<|endofprompt|>", 100276}}};
    case 199998:
      return {ranks, "o200k", {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}};
    case 128000:
      return {ranks, "llama3", llama3_special()};
    default:
      return {ranks, "cl100k", {}};
  }
}

}  // namespace

Tokenizer load_tiktoken(const std::string& path, const TokenizerLoadOptions& options) {
  return parse_tiktoken(read_file(path, size_t{256} << 20), path, options);
}

Tokenizer parse_tiktoken(std::string_view text, const std::string& path,
                         const TokenizerLoadOptions& options) {
  TokenizerSpec spec;
  spec.tokens = read_ranks(text, path);
  if (!merges_of_bpe(spec.tokens, spec.merges)) {
    spec.merges = merges_of_all_halves(spec.tokens);
    spec.whole_pieces_first = true;
  }
  const Encoding known = known_encoding(spec.tokens.size());
  spec.patterns = patterns_by_name(options.pattern.empty() ? known.pattern : options.pattern);
  for (const AddedToken& t : known.special) {
    detail::place_token(spec.tokens, t.id, t.text, path);
    spec.added.push_back(t);
  }
  spec.eot = detail::guess_eot(spec.added);
  return Tokenizer(std::move(spec));
}

void save_tiktoken(const Tokenizer& tokenizer, const std::string& path) {
  const TokenizerSpec& spec = tokenizer.spec();
  std::vector<bool> reached(spec.tokens.size());
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const TokenId result = spec.merges[i].result, before = i == 0 ? 0 : spec.merges[i - 1].result;
    check(before <= result, path, ": a rank file needs ids in the order of the merges; merge ",
          i + 1, " gives id ", result, " after id ", before, "; write tokenizer.json instead");
    reached[result] = true;
  }
  std::string out;
  for (TokenId id = 0; id < spec.tokens.size(); ++id) {
    const std::string& t = spec.tokens[id];
    if (t.empty() || tokenizer.find_added(t) == id) continue;
    check(t.size() == 1 || reached[id] || spec.whole_pieces_first, path, ": in a rank file every ",
          "token is merged from its bytes; id ", id, " is not; write tokenizer.json instead");
    out += to_base64(t) + " " + std::to_string(id) + "\n";
  }
  write_file_atomic(path, out);
}

}  // namespace tally
