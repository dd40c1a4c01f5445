#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe_tables.h"

namespace tally {

/// Byte-pair encoding of single pieces: the pair of lowest rank is merged first, the leftmost of
/// equals, until no rule fits. Sennrich et al. 2016, arXiv:1508.07909. Immutable.
class BpeModel {
 public:
  /// `tokens`: the bytes of each id (empty: no such token). `merges`: in the order of their ranks.
  /// `whole_pieces_first`: a piece that is itself a token is that token, whatever the merges say
  /// (LLaMA-3's files). Throws Error if a pair has two merges.
  BpeModel(const std::vector<std::string>& tokens, const std::vector<Merge>& merges,
           bool whole_pieces_first);

  /// Appends the ids of `piece` (under 4 GiB). A short piece takes at most O(n^2) steps, a long
  /// one O(n log n). Throws Error if it holds a byte for which there is no token.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

  bool merges_nothing() const { return rules_.empty() && whole_.empty(); }

 private:
  void merge_short(std::string_view piece, std::vector<TokenId>& ids) const;
  void merge_long(std::string_view piece, std::vector<TokenId>& ids) const;
  TokenId id_of(char byte) const;

  std::array<TokenId, 256> byte_ids_;
  PairRules rules_;
  TokenIndex whole_;  // empty unless whole_pieces_first
};

}  // namespace tally
