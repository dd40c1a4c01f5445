#pragma once
#include <cstdint>
#include <span>

#include "data/token_file.h"

namespace tally {

/// Windows of tokens for next-token training: inputs are T = `context` tokens, targets the same
/// shifted by one. There is no state: what sample i is depends on (seed, i) alone, so that any
/// batch can be made by itself, after a resume or on another machine.
///
/// An epoch has W = (tokens - 1) / T windows, side by side, each token a target at most once; their
/// order is a keyed permutation of 0 .. W-1. What the windows leave over, up to T - 1 tokens, lies
/// before and behind them in a proportion that changes from epoch to epoch.
class Dataset {
 public:
  /// Throws Error, naming the least number of tokens, unless one window fits; or if context < 1.
  Dataset(TokenFile tokens, int64_t context, uint64_t seed = 1);

  int64_t context() const { return context_; }
  int64_t windows() const { return windows_; }  ///< W, samples of an epoch
  const TokenFile& tokens() const { return tokens_; }

  /// Where the window of sample `index` begins, index >= 0, in the order of training.
  int64_t start(int64_t index) const;

  /// Sample `index`; both spans have T elements. Throws Error for an id out of the vocabulary.
  void sample(int64_t index, std::span<int64_t> inputs, std::span<int64_t> targets) const;

  /// Batch `step` of B rows: samples step B .. step B + B - 1. Both spans have B T elements, (B,T)
  /// row-major; B is taken from their size.
  void batch(int64_t step, std::span<int64_t> inputs, std::span<int64_t> targets) const;

  /// Asks the system to read `count` batches of `rows` rows from the disk in the background, from
  /// batch `step` on: batch() finds them in memory then, with the same ids.
  void will_read(int64_t step, int64_t count, int64_t rows) const;

  /// Windows number .. number + B - 1 in the order of the text, for evaluation: all W of them are
  /// every target but the up to T - 1 that are left over at the end. Spans as in `batch`.
  void windows_in_order(int64_t number, std::span<int64_t> inputs,
                        std::span<int64_t> targets) const;

 private:
  void read(int64_t start, std::span<int64_t> inputs, std::span<int64_t> targets) const;
  int64_t rows(std::span<int64_t> inputs, std::span<int64_t> targets) const;

  TokenFile tokens_;
  int64_t context_, windows_;
  uint64_t seed_;
};

/// A permutation of 0 .. size-1 chosen by `key`, one element at a time and without memory: a
/// Feistel network on the next even number of bits, walked until it lands below `size` (Black and
/// Rogaway 2002, "Ciphers with arbitrary finite domains"). 0 <= index < size.
int64_t keyed_permutation(int64_t index, int64_t size, uint64_t key);

/// Bytes of text that `targets` stand for; `byte_lengths` from Tokenizer::byte_lengths. Targets
/// below 0 (ignored) count none.
int64_t source_bytes(std::span<const int64_t> targets, std::span<const uint32_t> byte_lengths);

/// What a loss summed over targets (in nats) is in bits per byte of text.
double bits_per_byte(double total_nats, int64_t bytes);

}  // namespace tally
