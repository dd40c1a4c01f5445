#pragma once
#include <span>
#include <vector>

#include "data/draws.h"

namespace tally {

/// BERT's objective: guess tokens that are hidden. Devlin et al. 2018, arXiv:1810.04805, sec. 3.1.
struct MaskedTokenOptions {
  int64_t vocab = 0, mask_id = -1;
  double rate = 0.15;          // share of tokens to be guessed
  double mask_share = 0.8;     // of these: replaced by mask_id
  double random_share = 0.1;   // of these: replaced by any id; the others stay as they are
  std::vector<int64_t> never;  // ids that are never chosen: padding, separators
  int64_t boundary = -1;  // one that is never chosen, and never put in another's place; -1: none
  /// Where none was chosen: one is, at random, as in BERT's code.
  bool at_least_one = false;

  /// Throws Error unless the ids lie in the vocabulary and the shares are probabilities.
  void check() const;
};

/// Hides tokens of one sequence in place and writes what is to be guessed: the token itself where it
/// was chosen, kIgnoredTarget elsewhere. Each token is chosen by itself with probability `rate`, from
/// the block of random numbers of its place. Throws Error for an id outside the vocabulary, naming
/// its place, or spans of two lengths.
void mask_tokens(const MaskedTokenOptions&, const SequenceKey&, std::span<int64_t> ids,
                 std::span<int64_t> targets);

}  // namespace tally
