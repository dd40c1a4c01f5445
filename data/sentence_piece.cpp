#include "data/sentence_piece.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/gguf.h"
#include "data/utf8.h"

namespace tally {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The table of the pieces that `take` accepts.
template <class F>
PieceTable table_of(const SentencePieceSpec& spec, F&& take) {
  std::vector<PieceTable::Entry> entries;
  TokenId id = 0;
  for (const auto* pieces : {&spec.pieces, &spec.without_id}) {
    for (const SentencePiece& piece : *pieces) {
      if (take(piece.kind)) entries.push_back({piece.text, id});
      ++id;
    }
  }
  return PieceTable(std::move(entries));
}

/// The byte that "<0x0A>" names; -1 if it is not of that form.
int named_byte(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(high * 16 + low);
}

}  // namespace

size_t character_length(std::string_view text) {
  constexpr uint8_t kLengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return std::min<size_t>(kLengths[static_cast<uint8_t>(text[0]) >> 4], text.size());
}

SentencePieces::SentencePieces(SentencePieceSpec spec)
    : spec_(std::move(spec)), characters_(spec_.characters) {
  check_pieces();
  read_byte_pieces();
  pieces_ = table_of(spec_, [](PieceKind k) {
    return k == PieceKind::normal || k == PieceKind::user_defined || k == PieceKind::unused;
  });
  user_defined_ = table_of(spec_, [](PieceKind k) { return k == PieceKind::user_defined; });
}

void SentencePieces::check_pieces() {
  least_score_ = std::numeric_limits<float>::max();
  greatest_score_ = std::numeric_limits<float>::lowest();
  check(spec_.unigram || spec_.without_id.empty(),
        "sentencepiece: pieces without an id are of unigram models");
  for (TokenId id = 0; id < spec_.pieces.size() + spec_.without_id.size(); ++id) {
    const SentencePiece& piece = piece_at(id);
    check(!piece.text.empty(), "sentencepiece: a piece must have a text; id ", id, " has none");
    check(std::isfinite(piece.score), "sentencepiece: a score must be finite; that of ",
          quoted_name(piece.text), " is ", double{piece.score});
    if (piece.kind == PieceKind::unknown) {
      check(unknown_ == kNoToken, "sentencepiece: there must be one unknown piece; ids ", unknown_,
            " and ", id, " are");
      unknown_ = id;
    }
    if (piece.kind != PieceKind::normal) continue;
    least_score_ = std::min(least_score_, piece.score);
    greatest_score_ = std::max(greatest_score_, piece.score);
  }
  check(unknown_ != kNoToken, "sentencepiece: there must be one unknown piece; there is none");
  std::vector<std::string_view> texts;
  for (const auto* pieces : {&spec_.pieces, &spec_.without_id})
    for (const SentencePiece& piece : *pieces) texts.push_back(piece.text);
  std::ranges::sort(texts);
  const auto twice = std::ranges::adjacent_find(texts);
  check(twice == texts.end(), "sentencepiece: a piece must be there once; ",
        twice == texts.end() ? "" : quoted_name(*twice), " is there twice");
}

void SentencePieces::read_byte_pieces() {
  byte_ids_.fill(kNoToken);
  size_t count = 0;
  for (TokenId id = 0; id < spec_.pieces.size(); ++id) {
    if (spec_.pieces[id].kind != PieceKind::byte) continue;
    const int byte = named_byte(spec_.pieces[id].text);
    check(byte >= 0, "sentencepiece: a byte piece must be spelled like <0x0A>; ",
          quoted_name(spec_.pieces[id].text), " is not");
    byte_ids_[static_cast<size_t>(byte)] = id;
    ++count;
  }
  check(count == (spec_.byte_fallback ? 256U : 0U), "sentencepiece: byte fallback is ",
        spec_.byte_fallback ? "on" : "off", "; there are ", count,
        " byte pieces, where there must be ", spec_.byte_fallback ? 256 : 0);
}

std::string SentencePieces::surface(TokenId id) const {
  const SentencePiece& piece = spec_.pieces[id];
  if (piece.kind == PieceKind::unknown) return spec_.unknown_surface;
  if (piece.kind == PieceKind::byte) return {static_cast<char>(named_byte(piece.text))};
  if (piece.kind == PieceKind::control) return piece.text;
  std::string text;
  for (size_t at = 0; at < piece.text.size();) {
    const bool blank = std::string_view(piece.text).substr(at).starts_with(kBlank);
    text += blank ? ' ' : piece.text[at];
    at += blank ? kBlank.size() : 1;
  }
  return text;
}

/// What the beginning of `text` becomes, and how much of it that takes: a user-defined piece, the
/// longest mapped sequence, or one character.
std::string_view SentencePieces::next_normal(std::string_view text, size_t* taken) const {
  if (!user_defined_.empty()) {
    *taken = user_defined_.longest_prefix(text);
    if (*taken > 0) return text.substr(0, *taken);
  }
  const CharacterMap::Match match = characters_.longest(text);
  *taken = match.length;
  if (match.length > 0) return match.result;
  *taken = character_length(text);
  if (well_formed_prefix(text.substr(0, *taken)) == *taken) return text.substr(0, *taken);
  *taken = 1;
  return kReplacement;
}

std::string SentencePieces::normalise(std::string_view text) const {
  std::string out;
  const bool trims = spec_.remove_extra_whitespaces;
  const std::string_view blank = spec_.escape_whitespaces ? kBlank : std::string_view(" ");
  size_t taken = 0;
  while (trims && !text.empty() && next_normal(text, &taken) == " ") text.remove_prefix(taken);
  if (text.empty()) return out;
  if (spec_.add_dummy_prefix && !spec_.whitespace_as_suffix) out += blank;
  bool after_blank = trims;
  for (; !text.empty(); text.remove_prefix(taken)) {
    std::string_view part = next_normal(text, &taken);
    while (after_blank && part.starts_with(' ')) part.remove_prefix(1);
    for (const char c : part) {
      if (c == ' ')
        out += blank;
      else
        out += c;
    }
    if (!part.empty()) after_blank = part.ends_with(' ');
    if (!trims) after_blank = false;
  }
  while (trims && out.ends_with(blank)) out.resize(out.size() - blank.size());
  if (spec_.add_dummy_prefix && spec_.whitespace_as_suffix) out += blank;
  return out;
}

void SentencePieces::encode(std::string_view text, std::vector<TokenId>& ids) const {
  const std::string normal = normalise(text);
  check(normal.size() < UINT32_MAX, "sentencepiece: a text must be shorter than 4 GiB; this has ",
        normal.size(), " bytes; part it");
  if (spec_.unigram)
    encode_unigram(normal, ids);
  else
    encode_bpe(normal, ids);
}

/// Appends one piece. What is unknown becomes its bytes, or joins what was unknown before it, where
/// that belongs to this text too (whose ids begin at `begin`).
void SentencePieces::append(std::string_view piece, TokenId id, size_t begin,
                            std::vector<TokenId>& ids) const {
  if (id != unknown_) return ids.push_back(id);
  if (spec_.byte_fallback) {
    for (const char c : piece) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
  } else if (ids.size() == begin || ids.back() != unknown_) {
    ids.push_back(unknown_);
  }
}

}  // namespace tally
