#pragma once
#include <cstdint>
#include <vector>

#include "data/bpe.h"

namespace tally {

/// The pairs of neighbouring parts met while merges are learnt: their counts and places.
class PairTable {
 public:
  struct Pair {
    TokenId left, right;
    int64_t count;
    std::vector<uint32_t> places;  // where the left part begins; some may be out of date
  };

  /// The index of a pair, which is entered with count 0 if it is new.
  uint32_t find_or_add(TokenId left, TokenId right, bool* is_new) {
    if (pairs_.size() * 2 >= slots_.size()) grow();
    uint32_t& slot = slots_[slot_of(left, right)];
    *is_new = slot == 0;
    if (slot == 0) {
      pairs_.push_back({left, right, 0, {}});
      slot = static_cast<uint32_t>(pairs_.size());
    }
    return slot - 1;
  }

  /// Lowers the count of a pair that is known.
  void count_down(TokenId left, TokenId right, int64_t times) {
    pairs_[slots_[slot_of(left, right)] - 1].count -= times;
  }

  /// Moves a pair's places out and sets its count to 0.
  Pair take(uint32_t index) {
    Pair pair = std::move(pairs_[index]);
    pairs_[index] = {pair.left, pair.right, 0, {}};
    return pair;
  }

  Pair& operator[](uint32_t index) { return pairs_[index]; }
  const Pair& operator[](uint32_t index) const { return pairs_[index]; }

 private:
  size_t slot_of(TokenId left, TokenId right) const {
    const size_t mask = slots_.size() - 1;
    // The upper half of the product depends on all bits of both ids.
    size_t slot = ((uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u) >> 32 & mask;
    while (slots_[slot] != 0 &&
           !(pairs_[slots_[slot] - 1].left == left && pairs_[slots_[slot] - 1].right == right)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  void grow() {
    slots_.assign(slots_.empty() ? 1024 : slots_.size() * 2, 0);
    for (uint32_t i = 0; i < pairs_.size(); ++i) {
      slots_[slot_of(pairs_[i].left, pairs_[i].right)] = i + 1;
    }
  }

  std::vector<Pair> pairs_;
  std::vector<uint32_t> slots_;  // pair + 1, 0 where free; a power of two, at most half full
};

}  // namespace tally
