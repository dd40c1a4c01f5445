#include "data/character_map.h"

#include <cstring>

#include "core/error.h"

namespace tally {
namespace {

// A unit: label in the low byte, bit 8 for "a value belongs here", offset above, bit 31 for a value.
bool has_value(uint32_t unit) { return (unit >> 8 & 1U) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFFU; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FFU; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200U) >> 6); }

}  // namespace

CharacterMap::CharacterMap(std::string_view blob) {
  if (blob.empty()) return;
  uint32_t bytes = 0;
  check(blob.size() >= sizeof bytes, "sentencepiece: the map of characters has only ", blob.size(),
        " bytes");
  std::memcpy(&bytes, blob.data(), sizeof bytes);
  blob.remove_prefix(sizeof bytes);
  check(bytes % sizeof(uint32_t) == 0 && bytes > 0 && bytes < blob.size(),
        "sentencepiece: the trie of the map of characters is said to have ", bytes,
        " bytes; the map has ", blob.size());
  units_.resize(bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), blob.data(), bytes);
  results_ = blob.substr(bytes);
  check(results_.back() == '\0', "sentencepiece: the map of characters must end in a NUL");
}

CharacterMap::Match CharacterMap::longest(std::string_view text) const {
  Match best;
  if (units_.empty()) return best;
  uint32_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (at >= units_.size()) break;
    const uint32_t place = value_of(units_[at]);
    if (place < results_.size()) best = {i + 1, std::string_view(results_.c_str() + place)};
  }
  return best;
}

}  // namespace tally
