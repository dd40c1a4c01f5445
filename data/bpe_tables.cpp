#include "data/bpe_tables.h"

#include <bit>
#include <cstring>

namespace tally {

uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  uint64_t h = bytes.size() * kGolden;
  const char* p = bytes.data();
  size_t left = bytes.size();
  const auto add = [&h](uint64_t word) {
    h = (h ^ word) * kGolden;
    h ^= h >> 29;
  };
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    add(word);
  }
  uint64_t word = 0;
  for (size_t i = 0; i < left; ++i) word |= uint64_t{static_cast<uint8_t>(p[i])} << 8 * i;
  add(word);
  h *= kGolden;
  return h ^ h >> 32;
}

TokenIndex::TokenIndex(const std::vector<std::string>& tokens)
    : tokens_(tokens), slots_(std::bit_ceil(tokens.size() * 2 + 2), kNoToken) {
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    size_t slot = hash_bytes(tokens[id]) & mask;
    while (slots_[slot] != kNoToken) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<TokenId>(id);
  }
}

TokenId TokenIndex::find(std::string_view bytes) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash_bytes(bytes) & mask;
  while (slots_[slot] != kNoToken && tokens_[slots_[slot]] != bytes) slot = (slot + 1) & mask;
  return slots_[slot];
}

}  // namespace tally
