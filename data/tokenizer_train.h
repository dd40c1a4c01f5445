#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe_train.h"
#include "data/text_data.h"
#include "data/tokenizer.h"

namespace tally {

struct TokenizerTrainOptions {
  int64_t vocab_size = 0;        ///< 256 bytes + merges + special tokens
  std::string pattern = "gpt2";  ///< see patterns_by_name
  TieRule tie = TieRule::bytes_greater;
  std::vector<std::string> special = {"<|endoftext|>"};  ///< they get the last ids, in this order
};

/// Learns a byte-level BPE from text added bit by bit. Ids 0 to 255 are the bytes, then come the
/// merges in the order they were learnt. Special tokens in the text part it and are not learnt
/// from.
class TokenizerTrainer {
 public:
  /// Throws Error if the vocabulary has no room for the bytes and the special tokens, or a special
  /// token is empty or listed twice.
  explicit TokenizerTrainer(TokenizerTrainOptions options);

  /// Counts the pieces of a text that stands by itself (a file, a document).
  void add(std::string_view text);

  /// The tokenizer; its vocabulary is smaller than asked for if the text has too few pairs to
  /// merge. Throws Error if no text was added.
  Tokenizer train() const;

 private:
  TokenizerTrainOptions options_;
  Pretokenizer pretokenizer_;
  SpecialMatcher matcher_;
  PieceCounts counts_;
};

/// `tally tokenizer train`: learns from whole files.
Tokenizer train_tokenizer(const std::vector<std::string>& files,
                          const TokenizerTrainOptions& options);

/// Learns from the documents of files that `text` does not hold out: what training a model on a
/// text without a given tokenizer does.
Tokenizer train_tokenizer(const std::vector<std::string>& files,
                          const TokenizerTrainOptions& options, const TextOptions& text);

/// What `tally tokenizer info` prints.
struct TokenizerInfo {
  int64_t vocab_size = 0, tokens = 0;  ///< ids up to the greatest; those that have a token
  int64_t merges = 0;
  int64_t longest_token = 0;  ///< bytes
  int64_t missing_bytes = 0;  ///< bytes without a token: text that holds them is refused
  std::string pattern, hash;
  std::vector<AddedToken> added;
  std::optional<TokenId> eot;
};
TokenizerInfo describe(const Tokenizer& tokenizer);

}  // namespace tally
