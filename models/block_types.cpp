#include "models/block_types.h"

#include <cstring>

#include "core/dtype.h"
#include "core/error.h"

namespace tally {
namespace {

float half_at(const uint8_t* p) {
  f16 value;
  std::memcpy(&value, p, sizeof value);
  return static_cast<float>(value);
}

/// Blocks of 32: low halves of the bytes are values 0 to 15, high halves 16 to 31. `high` holds the
/// fifth bits; `offset` is subtracted from each.
template <bool has_fifth>
void read_32(const uint8_t* q, const uint8_t* high, float d, float m, int offset, float* out) {
  uint32_t fifth = 0;
  if constexpr (has_fifth) std::memcpy(&fifth, high, sizeof fifth);
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t low = (q[i] & 15U) | (fifth >> i & 1U) << 4;
    const uint32_t upper = uint32_t{q[i]} >> 4 | (fifth >> (i + 16) & 1U) << 4;
    out[i] = d * static_cast<float>(static_cast<int>(low) - offset) + m;
    out[i + 16] = d * static_cast<float>(static_cast<int>(upper) - offset) + m;
  }
}

void read_q8_0(const uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

struct ScaleAndMinimum {
  float scale, minimum;
};

/// Eight pairs of six bits in twelve bytes.
ScaleAndMinimum pair_of(const uint8_t* packed, int part) {
  if (part < 4)
    return {static_cast<float>(packed[part] & 63), static_cast<float>(packed[part + 4] & 63)};
  const int scale = (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4;
  const int minimum = packed[part + 4] >> 4 | (packed[part] >> 6) << 4;
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

/// Q4_K, and Q5_K where `high` holds the fifth bits: 32 bytes, a bit for each part of the block.
void read_k(const uint8_t* block, const uint8_t* high, const uint8_t* q, float* out) {
  const float d = half_at(block), d_min = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const auto [scale, minimum] = pair_of(block + 4, part);
    const float step = d * scale, from = d_min * minimum;
    const uint8_t* bytes = q + part / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int low = part % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
      const int fifth = high ? (high[i] >> part & 1) << 4 : 0;
      out[part * 32 + i] = step * static_cast<float>(low | fifth) - from;
    }
  }
}

void read_q6_k(const uint8_t* block, float* out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, row = i % 128 / 32, column = i % 32;
    const uint8_t byte = low[half * 64 + row % 2 * 32 + column];
    const int four = row < 2 ? byte & 15 : byte >> 4;
    const int two = high[half * 32 + column] >> 2 * row & 3;
    const auto scale = static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = d * scale * static_cast<float>((four | two << 4) - 32);
  }
}

void read_block(StoredType type, const uint8_t* b, float* out) {
  switch (type) {
    case StoredType::q4_0:
      return read_32<false>(b + 2, nullptr, half_at(b), 0, 8, out);
    case StoredType::q4_1:
      return read_32<false>(b + 4, nullptr, half_at(b), half_at(b + 2), 0, out);
    case StoredType::q5_0:
      return read_32<true>(b + 6, b + 2, half_at(b), 0, 16, out);
    case StoredType::q5_1:
      return read_32<true>(b + 8, b + 4, half_at(b), half_at(b + 2), 0, out);
    case StoredType::q8_0:
      return read_q8_0(b, out);
    case StoredType::q4_k:
      return read_k(b, nullptr, b + 16, out);
    case StoredType::q5_k:
      return read_k(b, b + 16, b + 48, out);
    case StoredType::q6_k:
      return read_q6_k(b, out);
    default:
      fail("dequantise: ", name_of(type), " has no blocks");
  }
}

}  // namespace

void dequantise(StoredType type, std::span<const std::byte> blocks, std::span<float> out) {
  check(blocks.size() == stored_bytes(type, static_cast<int64_t>(out.size())),
        "dequantise: ", out.size(), " values of ", name_of(type), " do not lie in ", blocks.size(),
        " bytes");
  const auto* at = reinterpret_cast<const uint8_t*>(blocks.data());
  const auto step = static_cast<size_t>(block_elements(type));
  for (size_t i = 0; i < out.size(); i += step, at += bytes_of(type))
    read_block(type, at, out.data() + i);
}

}  // namespace tally
