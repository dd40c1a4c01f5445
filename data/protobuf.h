#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.h"

namespace tally {

/// Takes a protocol buffer message apart, field by field; what is read points into its bytes. Throws
/// Error, beginning with `origin`, where the bytes are not such a message.
class ProtobufReader {
 public:
  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;      // of a varint or of a fixed-size field's bits
    std::string_view bytes;  // of a text or a message
    bool is_bytes = false;
    float as_float() const {
      const auto bits = static_cast<uint32_t>(value);
      float f;
      std::memcpy(&f, &bits, sizeof f);
      return f;
    }
  };

  ProtobufReader(std::string_view message, const std::string& origin)
      : left_(message), origin_(origin) {}

  /// False at the end.
  bool next(Field& field) {
    if (left_.empty()) return false;
    const uint64_t tag = varint();
    field = {};
    field.number = tag >> 3;
    check(field.number > 0, origin_, ": a field of the message has no number");
    switch (tag & 7U) {
      case 0:
        field.value = varint();
        return true;
      case 1:
        std::memcpy(&field.value, take(8).data(), 8);
        return true;
      case 2:
        field.bytes = take(varint());
        field.is_bytes = true;
        return true;
      case 5:
        std::memcpy(&field.value, take(4).data(), 4);
        return true;
      default:
        fail(origin_, ": field ", field.number, " of the message has the unknown kind ", tag & 7U);
    }
  }

 private:
  std::string_view take(uint64_t size) {
    check(size <= left_.size(), origin_, ": a field of the message is said to have ", size,
          " bytes; only ", left_.size(), " are left");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    fail(origin_, ": a number of the message does not end");
  }

  std::string_view left_;
  const std::string& origin_;
};

/// Puts a message together.
class ProtobufWriter {
 public:
  void number(uint64_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void real(uint64_t field, float value) {
    varint(field << 3 | 5U);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    message_.append(bytes, sizeof bytes);
  }
  void text(uint64_t field, std::string_view value) {
    varint(field << 3 | 2U);
    varint(value.size());
    message_ += value;
  }
  const std::string& message() const { return message_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80U);
    message_ += static_cast<char>(value);
  }
  std::string message_;
};

}  // namespace tally
