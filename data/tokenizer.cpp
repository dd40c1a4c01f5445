#include "data/tokenizer.h"

#include <bit>
#include <utility>

#include "core/error.h"
#include "data/sentence_piece.h"
#include "data/utf8.h"

namespace tally {
namespace {

/// Added tokens are left out: text must not be able to spell a control token.
std::vector<std::string> mergeable_tokens(const TokenizerSpec& spec) {
  std::vector<std::string> tokens = spec.tokens;
  for (const AddedToken& t : spec.added) tokens[t.id].clear();
  return tokens;
}

void check_ids(const TokenizerSpec& spec) {
  const size_t n = spec.tokens.size();
  check(n > 0, "tokenizer: there must be at least one token; the vocabulary is empty");
  check(!spec.pieces || spec.pieces->spec().pieces.size() == n, "tokenizer: a SentencePiece model ",
        "must have a piece for each token; there are ", n, " tokens");
  check(!spec.target_pieces || (spec.pieces && spec.target_pieces->spec().pieces.size() == n),
        "tokenizer: a model for targets needs one for texts, with the same ", n, " ids");
  const auto known = [&](TokenId id, const char* what) {
    check(id < n && !spec.tokens[id].empty(), "tokenizer: ", what,
          " must be in the vocabulary; id ", id, " is not among its ", n, " ids");
  };
  for (const AddedToken& t : spec.added) {
    known(t.id, "an added token");
    check(spec.tokens[t.id] == t.text, "tokenizer: an added token must be its id's token; \"",
          t.text, "\" has id ", t.id, ", which is \"", spec.tokens[t.id], "\"");
  }
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const Merge& m = spec.merges[i];
    for (const TokenId id : {m.left, m.right, m.result}) known(id, "a merged token");
    check(spec.tokens[m.result] == spec.tokens[m.left] + spec.tokens[m.right],
          "tokenizer: a merge must give its two sides together; merge ", i + 1, " gives id ",
          m.result);
  }
  for (const TokenId id : spec.prefix) known(id, "a begin token");
  for (const TokenId id : spec.suffix) known(id, "an end token");
  if (spec.eot) known(*spec.eot, "the end-of-text token");
}

TokenizerSpec checked(TokenizerSpec spec) {
  check_ids(spec);
  return spec;
}

class Fnv {  // FNV-1a, 64 bits
 public:
  void add(std::string_view bytes) {
    add(bytes.size());
    for (const char c : bytes) step(static_cast<uint8_t>(c));
  }
  void add(uint64_t number) {
    for (int i = 0; i < 8; ++i) step(static_cast<uint8_t>(number >> 8 * i));
  }
  std::string text() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[h_ >> shift & 15];
    return digits;
  }

 private:
  void step(uint8_t byte) { h_ = (h_ ^ byte) * 0x100000001B3u; }
  uint64_t h_ = 0xCBF29CE484222325u;
};

/// Tells which blanks of SentencePiece's pieces decoding drops: the one at the very beginning of a
/// stretch of text, or all there where the model trims.
class FirstBlank {
 public:
  explicit FirstBlank(const SentencePieces* pieces) : pieces_(pieces) {}

  std::string_view without(int64_t id, std::string_view bytes) {
    if (!at_begin_ || pieces_ == nullptr) return bytes;
    const PieceKind kind = pieces_->kind(static_cast<TokenId>(id));
    if (kind == PieceKind::control) return bytes;
    const bool text = kind != PieceKind::byte && kind != PieceKind::unknown;
    const bool drops = text && pieces_->drops_first_blank() && bytes.starts_with(' ');
    if (drops) bytes.remove_prefix(1);
    at_begin_ = bytes.empty() && pieces_->spec().remove_extra_whitespaces;
    return bytes;
  }
  void restart() { at_begin_ = true; }

 private:
  const SentencePieces* pieces_;
  bool at_begin_ = true;
};

template <class Id>
std::string decode_ids(const Tokenizer& tokenizer, std::span<const Id> ids, bool skip_special) {
  std::string out;
  FirstBlank first(tokenizer.spec().pieces.get());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<int64_t>(ids[i]);
    check(id >= 0 && id < tokenizer.vocab_size(), "tokenizer: ids must be below the vocabulary's ",
          tokenizer.vocab_size(), "; id ", id, " at place ", i, " is not");
    if (skip_special && tokenizer.is_special(id)) continue;
    if (tokenizer.is_special(id)) first.restart();
    out += first.without(id, tokenizer.token_bytes(id));
  }
  return out;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerSpec spec)
    : spec_(checked(std::move(spec))),
      bpe_(mergeable_tokens(spec_), spec_.merges, spec_.whole_pieces_first),
      pretokenizer_(spec_.patterns),
      matcher_(spec_.added),
      special_(spec_.tokens.size()) {
  for (const AddedToken& t : spec_.added) special_[t.id] = t.special;
}

Tokenizer Tokenizer::bytes(bool end_of_text) {
  TokenizerSpec spec;
  for (int b = 0; b < 256; ++b) spec.tokens.emplace_back(1, static_cast<char>(b));
  if (end_of_text) {
    spec.tokens.emplace_back("<|endoftext|>");
    spec.added.push_back({"<|endoftext|>", 256, true});
    spec.eot = 256;
  }
  return Tokenizer(std::move(spec));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<TokenId> ids;
  Encoder(*this).append(text, special, ids);
  return ids;
}

std::vector<TokenId> Tokenizer::encode_target(std::string_view text) const {
  if (!spec_.target_pieces) return encode(text);
  std::vector<TokenId> ids;
  spec_.target_pieces->encode(text, ids);
  return ids;
}

std::vector<TokenId> Tokenizer::wrap(std::vector<TokenId> ids) const {
  ids.insert(ids.begin(), spec_.prefix.begin(), spec_.prefix.end());
  ids.insert(ids.end(), spec_.suffix.begin(), spec_.suffix.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  return decode_ids(*this, ids, skip_special);
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  return decode_ids(*this, ids, skip_special);
}

std::string Tokenizer::decode_text(std::span<const TokenId> ids, bool skip_special) const {
  return replace_ill_formed(decode(ids, skip_special));
}

std::string_view Tokenizer::token_bytes(int64_t id) const {
  check(id >= 0 && id < vocab_size(), "tokenizer: ids must be below the vocabulary's ",
        vocab_size(), "; given id ", id);
  const std::string& bytes = spec_.tokens[static_cast<size_t>(id)];
  check(!bytes.empty(), "tokenizer: every id must have a token; id ", id,
        " is a gap in this vocabulary");
  return bytes;
}

int64_t Tokenizer::token_byte_length(int64_t id) const {
  const std::string_view bytes = token_bytes(id);
  return is_special(id) ? 0 : static_cast<int64_t>(bytes.size());
}

std::vector<uint32_t> Tokenizer::byte_lengths() const {
  std::vector<uint32_t> lengths(spec_.tokens.size());
  for (size_t id = 0; id < lengths.size(); ++id) {
    lengths[id] = special_[id] ? 0 : static_cast<uint32_t>(spec_.tokens[id].size());
  }
  return lengths;
}

bool Tokenizer::is_special(int64_t id) const {
  return id >= 0 && id < vocab_size() && special_[static_cast<size_t>(id)];
}

std::optional<TokenId> Tokenizer::find_added(std::string_view text) const {
  for (const AddedToken& t : spec_.added) {
    if (t.text == text) return t.id;
  }
  return std::nullopt;
}

std::string Tokenizer::hash() const {
  Fnv h;
  h.add(spec_.tokens.size());
  for (const std::string& t : spec_.tokens) h.add(t);
  h.add(spec_.merges.size());
  for (const Merge& m : spec_.merges) {
    h.add(m.left);
    h.add(m.right);
  }
  h.add(spec_.patterns.size());
  for (const std::string& p : spec_.patterns) h.add(p);
  std::vector<int> kind(spec_.tokens.size());  // by id: files list added tokens in any order
  for (const AddedToken& t : spec_.added) kind[t.id] = t.special ? 2 : 1;
  for (size_t id = 0; id < kind.size(); ++id) {
    if (kind[id] != 0) h.add(id * 4 + kind[id]);
  }
  h.add(spec_.whole_pieces_first);
  for (const auto* pieces : {&spec_.pieces, &spec_.target_pieces}) {
    if (!*pieces) continue;
    const SentencePieceSpec& model = (*pieces)->spec();
    for (const auto* list : {&model.pieces, &model.without_id}) {
      for (const SentencePiece& p : *list) {
        h.add(p.text);
        h.add(uint64_t{std::bit_cast<uint32_t>(p.score)} << 8 | static_cast<uint64_t>(p.kind));
      }
    }
    h.add(model.characters);
    for (const bool flag :
         {model.unigram, model.byte_fallback, model.add_dummy_prefix,
          model.remove_extra_whitespaces, model.escape_whitespaces, model.whitespace_as_suffix})
      h.add(flag);
  }
  return h.text();
}

std::string StreamDecoder::push(int64_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  held_ += tokenizer_.token_bytes(id);
  std::string out;
  while (!held_.empty()) {
    const size_t good = well_formed_prefix(held_);
    out.append(held_, 0, good);
    held_.erase(0, good);
    if (held_.empty() || is_unfinished(held_)) break;
    out += "\xEF\xBF\xBD";
    held_.erase(0, ill_formed_part(held_));
  }
  return out;
}

std::string StreamDecoder::finish() { return replace_ill_formed(std::exchange(held_, {})); }

}  // namespace tally
