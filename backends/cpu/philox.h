#pragma once
// core/random.h's Philox4x32-10, a block of four words in each lane: the same words in the same
// order, kPhiloxWords at a time.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

/// Words of one step: two vectors of them.
inline constexpr int kPhiloxWords = 2 * kLanes;

struct PhiloxWords {
  U32 words[2];  // in order
};

/// The words of the kLanes64 blocks from `block` on.
[[gnu::always_inline]] inline PhiloxWords philox_words(uint64_t key, uint64_t stream,
                                                       uint64_t block) {
#if defined(__AVX512F__)
  const U64 lanes{0, 1, 2, 3, 4, 5, 6, 7};
#elif defined(__AVX2__)
  const U64 lanes{0, 1, 2, 3};
#else
  const U64 lanes{0, 1};
#endif
  // Only the lower halves count: what the upper ones collect no product sees.
  const U64 counter = lanes + block, zero{};
  U64 c0 = counter, c1 = counter >> 32, c2 = zero + (stream & 0xffffffffu),
      c3 = zero + (stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const U64 p0 = multiply_lower(c0, zero + uint64_t{0xD2511F53u});
    const U64 p1 = multiply_lower(c2, zero + uint64_t{0xCD9E8D57u});
    c0 = (p1 >> 32) ^ c1 ^ uint64_t { k0 };
    c2 = (p0 >> 32) ^ c3 ^ uint64_t { k1 };
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const U64 first = (c0 & 0xffffffffu) | (c1 << 32), second = (c2 & 0xffffffffu) | (c3 << 32);
#if defined(__AVX512F__)
  const U64 low = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
  const U64 high = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX2__)
  const U64 low = __builtin_shufflevector(first, second, 0, 4, 1, 5);
  const U64 high = __builtin_shufflevector(first, second, 2, 6, 3, 7);
#else
  const U64 low = __builtin_shufflevector(first, second, 0, 2);
  const U64 high = __builtin_shufflevector(first, second, 1, 3);
#endif
  return {{reinterpret_cast<U32>(low), reinterpret_cast<U32>(high)}};
}

/// The words [first, first + n) of a stream. `to` has room for a step more at either end: the
/// result is where in it word `first` stands.
inline const uint32_t* philox_stretch(uint64_t key, uint64_t stream, uint64_t first, int64_t n,
                                      uint32_t* to) {
  const uint64_t skipped = first % 4;
  const auto count = n + static_cast<int64_t>(skipped);
  for (int64_t i = 0; i < count; i += kPhiloxWords) {
    const PhiloxWords w = philox_words(key, stream, first / 4 + static_cast<uint64_t>(i / 4));
    __builtin_memcpy(to + i, w.words, sizeof w.words);
  }
  return to + skipped;
}

}  // namespace
}  // namespace tally::cpu
