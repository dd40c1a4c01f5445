#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe_tables.h"

namespace tally {

/// Texts and their ids in the order of their bytes: finds a text, or all that begin another.
class PieceTable {
 public:
  struct Entry {
    std::string text;
    TokenId id;
  };
  PieceTable() = default;
  /// Of equal texts it knows one.
  explicit PieceTable(std::vector<Entry> entries);

  bool empty() const { return entries_.empty(); }
  /// kNoToken if there is none.
  TokenId find(std::string_view text) const { return index_.empty() ? kNoToken : look_up(text); }
  /// Calls `found(id, length)` for every entry that `text` begins with, the shortest first.
  template <class F>
  void prefixes(std::string_view text, F&& found) const;
  /// The length of the longest; 0 if there is none.
  size_t longest_prefix(std::string_view text) const;

 private:
  TokenId look_up(std::string_view text) const;
  static uint8_t byte_of(const Entry& e, size_t at) {
    return at < e.text.size() ? static_cast<uint8_t>(e.text[at]) : uint8_t{0};
  }

  std::vector<Entry> entries_;
  std::array<uint32_t, 257> first_{};  // first_[b]: the first entry whose first byte is b or above
  TokenIndex index_;
};

template <class F>
void PieceTable::prefixes(std::string_view text, F&& found) const {
  if (text.empty() || entries_.empty()) return;
  const auto first = static_cast<uint8_t>(text[0]);
  auto low = entries_.begin() + first_[first], high = entries_.begin() + first_[first + 1];
  for (size_t depth = 1; low != high; ++depth) {
    // Those that end here come before those that go on.
    if (low->text.size() == depth) {
      found(low->id, depth);
      ++low;
    }
    if (depth == text.size()) return;
    const auto byte = static_cast<uint8_t>(text[depth]);
    low = std::partition_point(low, high, [&](const Entry& e) { return byte_of(e, depth) < byte; });
    high =
        std::partition_point(low, high, [&](const Entry& e) { return byte_of(e, depth) == byte; });
  }
}

}  // namespace tally
