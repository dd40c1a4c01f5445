#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace tally {

struct Gguf;               // data/gguf.h
struct SentencePieceSpec;  // data/sentence_piece.h

/// What some formats leave out and the caller may say.
struct TokenizerLoadOptions {
  /// The name of the pattern (see patterns_by_name), for tiktoken files and vocab.json +
  /// merges.txt. Left out: GPT-2's for the latter, and for the former that of the known encoding
  /// with as many ranks (GPT-2, cl100k, o200k, LLaMA-3, with its special tokens), else cl100k's and
  /// no special tokens.
  std::string pattern;
};

/// Reads a tokenizer, whatever it is kept in:
///   a folder         its tokenizer.json, else vocab.json + merges.txt (or encoder.json and
///                    vocab.bpe), else its one .tiktoken file or tokenizer.model; a tokenizer.json
///                    of another kind gives way to a tokenizer.model beside it
///                    or Marian's source.spm, target.spm and vocab.json
///   vocab.json, encoder.json   with merges.txt or vocab.bpe beside it
///   another *.json   a tokenizer.json
///   *.txt, *.bpe     merges with their vocabulary beside them
///   a GGUF file      the tokenizer inside, whatever the file is called
///   a SentencePiece model, whatever the file is called
///   any other file   tiktoken's lines "base64 rank"
///   the word bytes   the 256 bytes and <|endoftext|> (if there is no file of that name)
/// Throws Error naming the file and the reason. A tokenizer of another kind (WordPiece) or an option that is not supported is refused by name.
Tokenizer load_tokenizer(const std::string& path, const TokenizerLoadOptions& options = {});

/// Hugging Face's tokenizer.json of the byte-level BPE family. If tokenizer_config.json lies beside
/// it and names an eos_token, that is `eot`.
Tokenizer load_tokenizer_json(const std::string& path);
/// The same of a file's text, with nothing beside it; `origin` is its name in errors.
Tokenizer parse_tokenizer_json(std::string_view text, const std::string& origin);

/// GPT-2's two files.
Tokenizer load_vocab_merges(const std::string& vocab_path, const std::string& merges_path,
                            const TokenizerLoadOptions& options = {});
/// A file's text and its name in errors.
struct NamedText {
  std::string text, origin;
};
/// load_vocab_merges of the files' texts.
Tokenizer parse_vocab_merges(const NamedText& vocab, const NamedText& merges,
                             const TokenizerLoadOptions& options = {});

/// tiktoken's rank file. Parts merge where their bytes together have a rank, lowest first; a piece
/// that has a rank is not merged.
Tokenizer load_tiktoken(const std::string& path, const TokenizerLoadOptions& options = {});
/// load_tiktoken of the file's text; `origin` is its name in errors.
Tokenizer parse_tiktoken(std::string_view text, const std::string& origin,
                         const TokenizerLoadOptions& options = {});

/// A SentencePiece model file (unigram or BPE). Whether begin and end tokens are wanted, and which
/// one ends a text, is what tokenizer_config.json beside it says; "</s>" if that says nothing.
Tokenizer load_sentence_piece(const std::string& path);
/// Its content. Throws Error, beginning with `origin`, if the bytes are no such model.
SentencePieceSpec parse_sentence_piece(std::string_view bytes, const std::string& origin);
/// What save_sentence_piece writes.
std::string sentence_piece_bytes(const SentencePieceSpec& spec);

/// Marian's folder: vocab.json has the ids of the pieces that source.spm makes of a text and target.spm
/// of what is written for it (TokenizerSpec::target_pieces). A piece that it lacks is <unk>; </s> ends
/// a text; >>fra<< and the like are added tokens. Error for separate_vocabs, BPE and byte fallback.
Tokenizer load_marian(const std::string& folder);
/// Writes these three files, so that load_marian gives the tokenizer back.
void save_marian(const Tokenizer& tokenizer, const std::string& folder);

/// True if the bytes begin as such a file does.
bool looks_like_sentence_piece(std::string_view bytes);

/// The tokenizer inside a GGUF file: byte-level BPE (tokenizer.ggml.model gpt2) with the
/// pre-tokenizer that tokenizer.ggml.pre names, SentencePiece's BPE (llama) or unigram (t5). Its
/// eos_token_id is `eot`.
Tokenizer load_gguf_tokenizer(const std::string& path);
/// load_gguf_tokenizer of a file that is open; `origin` is its name in errors.
Tokenizer parse_gguf_tokenizer(const Gguf& file, const std::string& origin);

/// Writes a tokenizer.json that load_tokenizer_json and Hugging Face's tokenizers read as the same
/// tokenizer. The file is replaced whole or not at all.
void save_tokenizer_json(const Tokenizer& tokenizer, const std::string& path);
/// What it writes; `path` is where it is to go, for errors.
std::string tokenizer_json(const Tokenizer& tokenizer, const std::string& path);

/// Writes a SentencePiece tokenizer's model as a file that load_sentence_piece and the sentencepiece
/// library read. Throws Error for another tokenizer.
void save_sentence_piece(const Tokenizer& tokenizer, const std::string& path);

/// Writes a tokenizer into an existing folder, so that load_tokenizer of the folder gives it back:
/// tokenizer.json, or tokenizer.model for SentencePiece, with a tokenizer_config.json beside it
/// where only that can say which tokens begin and end a text.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder);

/// Writes vocab.json and merges.txt into an existing folder. Throws Error if the tokenizer has what
/// these files cannot say: a pattern other than gpt2's, or whole_pieces_first.
void save_vocab_merges(const Tokenizer& tokenizer, const std::string& folder);

/// Writes tiktoken's rank file; the pattern and the special tokens are not in it. Throws Error if
/// the ranks would give other merges (ids that do not follow the order of the merges).
void save_tiktoken(const Tokenizer& tokenizer, const std::string& path);

namespace detail {

/// No id may be above this: it bounds the memory that a file can ask for.
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 21;

/// Puts `bytes` at `id`; throws Error (beginning with `where`) if the id is out of range or taken.
void place_token(std::vector<std::string>& tokens, int64_t id, std::string bytes,
                 const std::string& where);

/// Tokens and model of a SentencePiece tokenizer; control pieces are added tokens.
TokenizerSpec sentence_piece_tokens(SentencePieceSpec model);

/// The first token among `added` that commonly ends a text; nothing if there is none.
std::optional<TokenId> guess_eot(const std::vector<AddedToken>& added);

/// The merge of the two alphabet-spelled sides; throws Error beginning with `where` if a side or
/// the result is not in the vocabulary.
Merge make_merge(const TokenIndex& index, std::string_view left, std::string_view right,
                 const std::string& where);

}  // namespace detail
}  // namespace tally
