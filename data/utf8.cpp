#include "data/utf8.h"

#include <cstdint>
#include <cstring>

namespace tally {
namespace {

struct Lead {
  int length;      // bytes of the whole character; 0: no character begins so
  uint8_t lo, hi;  // what the second byte may be
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};  // a continuation, or the start of an overlong form
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // higher ones would be surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // U+10FFFF is the last
  return {0, 0, 0};
}

struct Character {
  int good;    // how many bytes of `text` fit together
  int length;  // how many the whole character has (0: none begins here)
};

Character read_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 0) return {1, 0};
  int good = 1;
  while (good < lead.length && static_cast<size_t>(good) < text.size()) {
    const uint8_t next = byte(good);
    const bool fits = good == 1 ? next >= lead.lo && next <= lead.hi : (next & 0xC0) == 0x80;
    if (!fits) break;
    ++good;
  }
  return {good, lead.length};
}

}  // namespace

size_t well_formed_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (text.size() - at >= 8) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Character c = read_character(text.substr(at));
    if (c.good != c.length) break;
    at += c.good;
  }
  return at;
}

size_t ill_formed_part(std::string_view text) { return read_character(text).good; }

bool is_unfinished(std::string_view text) {
  const Character c = read_character(text);
  return c.length > c.good && static_cast<size_t>(c.good) == text.size();
}

std::string replace_ill_formed(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (true) {
    const size_t good = well_formed_prefix(bytes);
    out.append(bytes.substr(0, good));
    bytes.remove_prefix(good);
    if (bytes.empty()) return out;
    out += "\xEF\xBF\xBD";
    bytes.remove_prefix(ill_formed_part(bytes));
  }
}

}  // namespace tally
