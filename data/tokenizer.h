#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe.h"
#include "data/pretokenizer.h"
#include "data/tokenizer_special.h"

namespace tally {

class SentencePieces;  // data/sentence_piece.h

/// What `encode` does where the text holds the text of a special token, <|endoftext|> say.
enum class SpecialTokens : uint8_t {
  plain,    ///< nothing: it is text like any other. The default: user text cannot inject control.
  allowed,  ///< it becomes that token (the earliest, and of those the longest)
  refuse,   ///< Error naming the token and its place
};

/// Everything that defines a tokenizer; what files are read into and written from.
struct TokenizerSpec {
  std::vector<std::string> tokens;    ///< bytes by id; empty: no token has this id
  std::vector<Merge> merges;          ///< in the order of their ranks
  std::vector<std::string> patterns;  ///< see Pretokenizer
  std::vector<AddedToken> added;      ///< special and other added tokens; their ids are in `tokens`
  bool whole_pieces_first = false;    ///< a piece that is a token is not merged (LLaMA-3)
  std::vector<TokenId> prefix;        ///< what `wrap` puts before (BOS)
  std::vector<TokenId> suffix;        ///< and behind
  std::optional<TokenId> eot;         ///< end of text: parts documents, ends generation
  /// A SentencePiece model, which then makes ids of text in place of merges and patterns; `tokens`
  /// are what its pieces decode to.
  std::shared_ptr<const SentencePieces> pieces;
  /// Another model with the same ids, for texts that are written: Marian's target.spm.
  std::shared_ptr<const SentencePieces> target_pieces = nullptr;
};

/// Text to token ids and back: byte-level BPE, or plain bytes when there are no merges. Any bytes
/// can be encoded, and decoding gives exactly these bytes back. Adds nothing to the text: no
/// blank in front, no begin or end token. Immutable; safe to use from many threads.
///
/// A SentencePiece tokenizer may change the text as its model says: characters are mapped, blanks
/// trimmed, one is put before each stretch of text between special tokens and dropped again when
/// that is decoded from its beginning.
class Tokenizer {
 public:
  /// Throws Error if the parts do not fit together (an id out of range, a merge whose result is
  /// not its two sides, a special token listed twice, ...).
  explicit Tokenizer(TokenizerSpec spec);

  /// Ids 0 to 255 are the bytes; with `end_of_text`, <|endoftext|> is 256.
  static Tokenizer bytes(bool end_of_text = false);

  std::vector<TokenId> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::plain) const;

  /// Of a text that is to be written for another: as `encode`, but where the tokenizer has a model
  /// of its own for them.
  std::vector<TokenId> encode_target(std::string_view text) const;

  /// `ids` between the begin and end tokens that the tokenizer's file asks for (its
  /// post-processor); unchanged if it asks for none.
  std::vector<TokenId> wrap(std::vector<TokenId> ids) const;

  /// The exact bytes of `ids`; special tokens give their text, or nothing with `skip_special`.
  /// Throws Error for an id that the vocabulary lacks, with its place.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;
  std::string decode(std::span<const int64_t> ids, bool skip_special = false) const;

  /// `decode` as well-formed UTF-8: each ill-formed part becomes U+FFFD.
  std::string decode_text(std::span<const TokenId> ids, bool skip_special = false) const;

  /// One more than the greatest id: the number of rows of an embedding.
  int64_t vocab_size() const { return static_cast<int64_t>(spec_.tokens.size()); }

  /// The bytes of one token (a special token's text). Throws Error for an id out of the vocabulary.
  std::string_view token_bytes(int64_t id) const;

  /// How many bytes of text a token stands for: what bits per byte divides by. 0 for special
  /// tokens, which are not text.
  int64_t token_byte_length(int64_t id) const;

  /// `token_byte_length` of every id.
  std::vector<uint32_t> byte_lengths() const;

  bool is_special(int64_t id) const;
  std::optional<TokenId> eot() const { return spec_.eot; }
  /// The id of a special or added token by its text.
  std::optional<TokenId> find_added(std::string_view text) const;

  /// 16 hexadecimal digits that depend on what tokens there are, how text becomes ids, and nothing
  /// else: the same whichever kind of file it was read from, on every machine.
  std::string hash() const;

  /// The name of the pattern: gpt2, cl100k, ..., or "custom"; "sentencepiece" for such a model.
  std::string pattern_name() const {
    return spec_.pieces ? "sentencepiece" : name_of_patterns(spec_.patterns);
  }
  const TokenizerSpec& spec() const { return spec_; }

 private:
  friend class Encoder;
  TokenizerSpec spec_;
  BpeModel bpe_;
  Pretokenizer pretokenizer_;
  SpecialMatcher matcher_;
  std::vector<bool> special_;
};

/// Encodes many texts with one tokenizer and remembers the pieces it met: what `Tokenizer::encode`
/// gives, faster. Not for sharing between threads. The tokenizer must outlive it.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  /// Appends the ids of `text`.
  void append(std::string_view text, SpecialTokens special, std::vector<TokenId>& ids);

 private:
  class Cache;
  void append_plain(std::string_view text, std::vector<TokenId>& ids);
  const Tokenizer& tokenizer_;
  std::unique_ptr<Cache> cache_;
  size_t seen_ = 0;  // bytes encoded so far
};

/// Turns tokens into text as they come. Characters whose bytes are spread over tokens are held back
/// until they are whole; ill-formed parts become U+FFFD. The tokens go on from a text: the first
/// blank of SentencePiece stays. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}
  /// The text that `id` makes certain; may be empty.
  std::string push(int64_t id);
  /// What is left at the end (U+FFFD for a character that stayed incomplete).
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string held_;
};

}  // namespace tally
