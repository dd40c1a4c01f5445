#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tally {

/// GPT-2's alphabet of bytes: vocabulary files spell each byte as one printable character. Bytes
/// 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for themselves (as code points), the other 68, in
/// order, for U+0100 and up: a blank is U+0120. Radford et al. 2019, `encoder.py`.
const std::array<uint16_t, 256>& byte_alphabet();

/// Bytes as characters of the alphabet (UTF-8).
std::string to_alphabet(std::string_view bytes);

/// The bytes that `text` spells; nothing if it holds a character outside the alphabet.
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace tally
