#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

/// The precompiled map of characters in a SentencePiece model ("nmt_nfkc" and its like): what
/// sequences of characters become. Its form: 4 bytes length, a double-array trie of 32-bit units
/// with that many bytes (Aoe 1989, as Darts-clone lays it out), and texts that end in NUL, which the
/// trie's values are places of. Any bytes can be given; reading never leaves them.
class CharacterMap {
 public:
  /// Throws Error if the parts do not fit together.
  explicit CharacterMap(std::string_view blob);

  struct Match {
    size_t length = 0;  // of the text; 0: nothing is mapped here
    std::string_view result;
  };
  /// The longest mapped sequence that `text` begins with.
  Match longest(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string results_;
};

}  // namespace tally
