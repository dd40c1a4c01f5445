#include "data/bpe_alphabet.h"

namespace tally {
namespace {

constexpr int kEnd = 256 + 68;  // code points of the alphabet are below this

std::array<uint16_t, 256> make_alphabet() {
  std::array<uint16_t, 256> code{};
  uint16_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    code[b] = printable ? static_cast<uint16_t>(b) : next++;
  }
  return code;
}

std::array<int16_t, kEnd> invert(const std::array<uint16_t, 256>& code) {
  std::array<int16_t, kEnd> byte{};
  byte.fill(-1);
  for (int b = 0; b < 256; ++b) byte[code[b]] = static_cast<int16_t>(b);
  return byte;
}

}  // namespace

const std::array<uint16_t, 256>& byte_alphabet() {
  static const std::array<uint16_t, 256> alphabet = make_alphabet();
  return alphabet;
}

std::string to_alphabet(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const uint16_t code = byte_alphabet()[static_cast<uint8_t>(c)];
    if (code >= 0x80) {
      out += static_cast<char>(0xC0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      out += static_cast<char>(code);
    }
  }
  return out;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  static const std::array<int16_t, kEnd> bytes = invert(byte_alphabet());
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = static_cast<uint8_t>(text[i]);
    if (code >= 0x80) {  // two bytes of UTF-8: all that the alphabet needs
      if ((code & 0xE0) != 0xC0 || i + 1 == text.size()) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3F);
    }
    if (code >= kEnd || bytes[code] < 0) return std::nullopt;
    out += static_cast<char>(bytes[code]);
  }
  return out;
}

}  // namespace tally
