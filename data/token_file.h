#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/bpe_tables.h"
#include "data/file.h"

namespace tally {

/// What one token takes in a file.
enum class TokenWidth : uint8_t { u16 = 2, u32 = 4 };

/// "uint16" or "uint32", and back; throws Error for any other name.
std::string to_text(TokenWidth width);
TokenWidth token_width_by_name(const std::string& name);

/// What the JSON beside a token file says.
struct TokenMeta {
  std::string tokenizer_hash;  ///< Tokenizer::hash of the tokenizer; empty: unknown
  int64_t vocab_size = 0;      ///< ids are below this; 0: unknown
  std::optional<TokenId> eot;  ///< stands behind every document
  int64_t documents = 0;
  int64_t source_bytes = 0;  ///< bytes of text that the tokens stand for, `eot` counting none
  /// The same in the files that one preparation wrote, for training and validation; empty: unknown.
  std::string preparation = {};
};

struct TokenFileOptions {
  std::optional<TokenWidth> width = {};  ///< needed for raw files, which do not say it themselves
  int64_t vocab_size = 0;                ///< 0: what the JSON says, else unchecked
  std::string tokenizer_hash = {};       ///< if set, a file made with another tokenizer is refused
};

/// A run of token ids: memory-mapped files one behind the other, or held in memory. Cheap to copy;
/// immutable.
///   .npy   NumPy's one-dimensional '<u2' or '<u4', written by us with a JSON of the same name
///   beside .bin   llm.c's (header of 256 int32), else raw little-endian numbers of the width in
///   `options`
class TokenFile {
 public:
  /// Throws Error naming the file: not one of these formats, no width, a size that does not fit, no
  /// tokens, another tokenizer's, or a JSON beside it that does not belong to it.
  static TokenFile open(const std::string& path, const TokenFileOptions& options = {});

  /// `open` of a file's bytes, which must outlive it, and of the JSON beside it, if any.
  static TokenFile parse(std::span<const std::byte> bytes, const std::string& path,
                         const std::optional<std::string>& json = {},
                         const TokenFileOptions& options = {});

  /// Tokens in memory. Throws Error if an id is not below `meta.vocab_size` (where that is known).
  static TokenFile from_ids(std::span<const TokenId> ids, const TokenMeta& meta,
                            const std::string& name = "tokens in memory");

  /// Several behind one another, as if they were one file: nothing is copied, and the place of a
  /// token is found among n files in log2 n steps. The widths may differ. Error for none, or where
  /// two were made with different tokenizers.
  static TokenFile joined(const std::vector<TokenFile>& files);

  int64_t size() const { return size_; }
  TokenWidth width() const { return width_; }
  const std::string& name() const { return name_; }      ///< the path, for messages
  const std::string& format() const { return format_; }  ///< "npy", "llm.c", "raw" or "memory"
  const TokenMeta& meta() const { return meta_; }

  /// The id at `place`, 0 <= place < size(). Unchecked against the vocabulary.
  TokenId operator[](int64_t place) const;

  /// Copies ids place, place + 1, ... into `out`. Throws Error if that passes the end, or for an id
  /// that is not below the vocabulary, naming its place.
  void read(int64_t place, std::span<int64_t> out) const;

  /// Asks the system to read ids place, place + 1, ... from the disk while we go on: a hint, which
  /// changes nothing but the time of a later read().
  void will_read(int64_t place, int64_t count) const;

  /// Tokens begin .. end-1 of this one; shares its memory. Documents and bytes are unknown (0).
  TokenFile slice(int64_t begin, int64_t end) const;

  /// 16 hexadecimal digits that depend on all ids and nothing else. Reads everything.
  std::string content_hash() const;

 private:
  TokenFile() = default;
  static TokenFile read(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                        const std::string& path, const std::optional<std::string>& json,
                        const TokenFileOptions& options);
  /// Tokens of one file, or of a block of memory.
  struct Part {
    std::shared_ptr<const void> owner;  // the mapping or the vector that `data` points into
    const std::byte* data = nullptr;    // not aligned: a header may have any length
    int64_t begin = 0, end = 0;         // its places among those of all parts
    TokenWidth width = TokenWidth::u16;
    std::string name;
    const std::byte* at(int64_t place) const {
      return data + (place - begin) * static_cast<int64_t>(width);
    }
  };
  void set_part(std::shared_ptr<const void> owner, const std::byte* data, int64_t size);
  const Part& part_of(int64_t place) const;
  /// Calls use(part, from, to) for the places from .. to-1 of each part in turn.
  template <class F>
  void each_part(int64_t place, int64_t count, F&& use) const;

  std::shared_ptr<const std::vector<Part>> parts_;
  int64_t first_ = 0, size_ = 0;  // which places of the parts are ours
  TokenWidth width_ = TokenWidth::u16;
  std::string name_, format_;
  TokenMeta meta_;
};

/// Writes `path` (which must end in .npy) and the JSON beside it, piece by piece: any number of tokens
/// in the memory of a piece. What is not finished leaves no file; a crash leaves none with another's
/// JSON. Throws Error for an id that does not fit or is not below the vocabulary.
class TokenFileWriter {
 public:
  /// The width is u16 where the vocabulary is at most 65,536, unless given; `vocab_size` 0: unknown.
  TokenFileWriter(const std::string& path, int64_t vocab_size,
                  std::optional<TokenWidth> width = {});
  void append(std::span<const TokenId> ids);
  /// Brings the tokens to the disk, so that a full one is met before anything old is touched.
  void flush();
  /// Puts the file in place. `meta` is of all tokens; there must be one.
  void finish(const TokenMeta& meta);
  int64_t size() const { return size_; }

 private:
  std::string path_;
  int64_t vocab_size_, size_ = 0;
  TokenWidth width_;
  AtomicFile file_;
};

/// A TokenFileWriter in one call. Without a vocabulary the greatest id says the width.
void write_token_file(const std::string& path, std::span<const TokenId> ids, const TokenMeta& meta,
                      std::optional<TokenWidth> width = {});

/// What `inspect_token_file` found.
struct TokenFileReport {
  std::string path, format;
  TokenWidth width{};
  int64_t tokens = 0;
  int64_t distinct = 0;  ///< different ids
  TokenId max_id = 0;
  TokenMeta meta;  ///< from the JSON beside it
  int64_t context = 0;
  int64_t starts = 0;   ///< places where a window of context + 1 tokens can begin
  int64_t windows = 0;  ///< windows of an epoch (each token is a target at most once)
};

/// Reads a whole token file and says what it holds. With a vocabulary, every id is checked against
/// it; with a context (tokens of a training window; 0: none), the file must hold one window. Throws
/// Error as TokenFile::open does.
TokenFileReport inspect_token_file(const std::string& path, const TokenFileOptions& options = {},
                                   int64_t context = 0);

/// Throws Error unless `tokens` are enough for one window of `context` inputs and their targets.
void check_window(int64_t tokens, int64_t context, const std::string& name);

}  // namespace tally
