#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

using TokenId = uint32_t;
inline constexpr TokenId kNoToken = UINT32_MAX;

/// One rule of byte-pair encoding: `left` and `right` side by side become `result`.
struct Merge {
  TokenId left, right, result;
  bool operator==(const Merge&) const = default;
};

/// A hash of bytes: the same on every machine, fast on short strings, good in its upper bits too.
uint64_t hash_bytes(std::string_view bytes);

/// The ids of tokens by their bytes. Of several with the same bytes it knows one.
class TokenIndex {
 public:
  TokenIndex() = default;
  explicit TokenIndex(const std::vector<std::string>& tokens);
  /// kNoToken if there is none.
  TokenId find(std::string_view bytes) const;
  bool empty() const { return tokens_.empty(); }

 private:
  std::vector<std::string> tokens_;
  std::vector<TokenId> slots_;  // open addressing, a power of two
};

/// What a pair of tokens becomes, and when: a hash table of open addressing.
class PairRules {
 public:
  struct Rule {
    uint32_t rank = UINT32_MAX;  // UINT32_MAX: the pair stays as it is
    TokenId result = kNoToken;
  };

  bool empty() const { return size_ == 0; }

  /// Enters a pair; false if it was there.
  bool add(TokenId left, TokenId right, Rule rule) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[slot_of(left, right)];
    if (slot.rule.rank != UINT32_MAX) return false;
    slot = {left, right, rule};
    ++size_;
    return true;
  }

  Rule find(TokenId left, TokenId right) const { return slots_[slot_of(left, right)].rule; }

 private:
  struct Slot {
    TokenId left = kNoToken, right = kNoToken;
    Rule rule;
  };

  size_t slot_of(TokenId left, TokenId right) const {
    const size_t mask = slots_.size() - 1;
    // The upper half of the product depends on all bits of both ids.
    size_t at = ((uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u) >> 32 & mask;
    while (slots_[at].rule.rank != UINT32_MAX &&
           !(slots_[at].left == left && slots_[at].right == right)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.rule.rank != UINT32_MAX) slots_[slot_of(s.left, s.right)] = s;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  size_t size_ = 0;
};

}  // namespace tally
