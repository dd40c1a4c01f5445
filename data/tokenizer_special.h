#pragma once
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe.h"

namespace tally {

/// A token that is found in the text as it stands, before any pattern or merge.
struct AddedToken {
  std::string text;
  TokenId id = kNoToken;
  /// A control token (end of text, a role marker): never made from plain text. Otherwise an
  /// ordinary word that its makers added later, found in any text.
  bool special = true;
};

/// Finds added tokens in text: the earliest, and of those the longest.
class SpecialMatcher {
 public:
  explicit SpecialMatcher(const std::vector<AddedToken>& tokens);

  struct Match {
    size_t begin, end;
    const AddedToken* token;  // null: none was found, and begin = end = text.size()
  };
  /// The first token at or after `from`; with `also_special` false, among the ordinary ones alone.
  Match find(std::string_view text, size_t from, bool also_special) const;

  /// True if nothing can be found in that mode.
  bool empty(bool also_special) const { return tokens_.empty() || (!also_special && !ordinary_); }

 private:
  std::vector<AddedToken> tokens_;
  std::map<std::pair<uint32_t, char>, uint32_t> next_;  // (node, byte) -> node; node 0 is the root
  std::vector<int32_t> token_at_;                       // node -> token, -1 for none
  std::array<bool, 256> starts_{};                      // bytes that some token begins with
  bool ordinary_ = false;
};

}  // namespace tally
