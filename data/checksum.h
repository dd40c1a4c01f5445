#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tally {

/// CRC-32C (Castagnoli 1993; RFC 3720, appendix B.4) of bytes: finds every flip of up to 31
/// neighbouring bits, and other damage but for one case in 2^32.
uint32_t crc32c(std::span<const std::byte> bytes);
uint32_t crc32c(std::string_view bytes);

}  // namespace tally
