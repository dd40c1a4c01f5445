#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe_tables.h"
#include "data/character_map.h"
#include "data/piece_table.h"

namespace tally {

/// What a piece is to SentencePiece; the numbers are its files'.
enum class PieceKind : uint8_t {
  normal = 1,
  unknown,       ///< stands for what nothing else stands for
  control,       ///< never made from text
  user_defined,  ///< found in the text as it stands, never merged
  unused,        ///< taken apart again
  byte           ///< "<0x0A>": one byte of a character that has no piece
};

struct SentencePiece {
  std::string text;  ///< with U+2581 for a blank
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

/// A SentencePiece model. Kudo & Richardson 2018, arXiv:1808.06226.
struct SentencePieceSpec {
  std::vector<SentencePiece> pieces;  ///< by id
  /// Marian's vocabulary need not have what its models have, and both share it. Of unigram models:
  /// pieces that are found like normal ones, each then an unknown of its own; and whether what is
  /// unknown is looked up among all pieces, those of the other model too.
  std::vector<SentencePiece> without_id;
  bool unknown_by_text = false;
  bool unigram = true;           ///< else byte-pair encoding
  bool byte_fallback = false;    ///< a character without a piece becomes its bytes
  bool add_dummy_prefix = true;  ///< a blank before the text
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;  ///< a blank is U+2581 in pieces
  bool whitespace_as_suffix = false;
  std::string characters;                          ///< see CharacterMap; empty: identity
  std::string unknown_surface = " \xE2\x81\x87 ";  ///< what the unknown piece decodes to
};

/// Text to ids and back as the sentencepiece library does it. Unigram: the most probable pieces
/// (Viterbi; Kudo 2018, arXiv:1804.10959), where an unknown character costs 10 more than the
/// rarest piece. BPE: of all neighbours those that make the piece of highest score are joined
/// first. Immutable; safe to use from many threads.
class SentencePieces {
 public:
  /// Throws Error if there is not one unknown piece, if two pieces have one text, a score is not
  /// finite, or byte fallback and the 256 byte pieces do not go together.
  explicit SentencePieces(SentencePieceSpec spec);

  /// What the pieces are made of: characters mapped, blanks as the model wants them.
  std::string normalise(std::string_view text) const;

  /// Appends the ids of `text`. An ill-formed part of it is read as U+FFFD.
  void encode(std::string_view text, std::vector<TokenId>& ids) const;

  const SentencePieceSpec& spec() const { return spec_; }
  PieceKind kind(TokenId id) const { return spec_.pieces[id].kind; }
  TokenId unknown() const { return unknown_; }
  /// The bytes that a piece decodes to in the midst of a text; a control piece's text.
  std::string surface(TokenId id) const;
  /// Whether decoding drops the blank at the very beginning.
  bool drops_first_blank() const {
    return spec_.add_dummy_prefix || spec_.remove_extra_whitespaces;
  }

 private:
  /// With those without an id behind the others.
  const SentencePiece& piece_at(TokenId id) const {
    return id < spec_.pieces.size() ? spec_.pieces[id] : spec_.without_id[id - spec_.pieces.size()];
  }
  void check_pieces();
  void read_byte_pieces();
  std::string_view next_normal(std::string_view text, size_t* taken) const;
  void append(std::string_view piece, TokenId id, size_t begin, std::vector<TokenId>& ids) const;
  void encode_unigram(std::string_view text, std::vector<TokenId>& ids) const;
  void encode_bpe(std::string_view text, std::vector<TokenId>& ids) const;

  SentencePieceSpec spec_;
  CharacterMap characters_;
  PieceTable pieces_;        // normal, user-defined and unused
  PieceTable user_defined_;  // those alone
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> byte_ids_{};
  float least_score_ = 0, greatest_score_ = 0;
};

/// The length of the character at the start of `text` by its first byte, no more than there is.
size_t character_length(std::string_view text);

}  // namespace tally
