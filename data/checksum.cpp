#include "data/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace tally {
namespace {

// [0][b]: the checksum of byte b; [k][b]: of b and k zero bytes behind it. Eight bytes a step are
// eight look-ups that do not wait for each other.
constexpr auto kCrcTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t shorter = tables[k - 1][i];
      tables[k][i] = (shorter >> 8) ^ tables[0][shorter & 255];
    }
  }
  return tables;
}();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint32_t crc = 0xffffffffu;
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kCrcTables[7 - i][(word >> (8 * i)) & 255];
    bytes = bytes.subspan(8);
  }
  for (const std::byte b : bytes)
    crc = kCrcTables[0][(crc ^ static_cast<uint32_t>(b)) & 255] ^ (crc >> 8);
  return crc ^ 0xffffffffu;
}

uint32_t crc32c(std::string_view bytes) {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace tally
