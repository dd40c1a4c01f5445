#include "core/dtype.h"

namespace tally {

f16::f16(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = static_cast<uint16_t>(sign | 0x7e00u);
  } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 aligns the last bit to 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  } else {
    const uint32_t rebased = magnitude - 0x38000000u;
    bits = static_cast<uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
  }
}

f16::operator float() const {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
  uint32_t u;
  if (magnitude >= 0x7c00u) {
    u = 0x7f800000u | ((magnitude & 0x3ffu) << 13);
  } else if (magnitude >= 0x400u) {
    u = (magnitude << 13) + 0x38000000u;
  } else {
    u = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  }
  return std::bit_cast<float>(sign | u);
}

DType parse_dtype(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(DType::u8); ++i) {
    const DType t = static_cast<DType>(i);
    if (name(t) == text) return t;
  }
  fail("dtype: must be one of f32, f64, bf16, i64, f16, u8; got '", text, "'");
}

}  // namespace tally
