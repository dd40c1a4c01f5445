#pragma once
#include <array>
#include <cstdint>

namespace tally {

/// Philox4x32-10, a counter-based generator: block `counter` of stream `key` is a pure function of
/// both, so the same bits come out on every backend, in any order and after any resume.
/// Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
struct Philox {
  static constexpr std::array<uint32_t, 4> block(uint64_t key, uint64_t stream, uint64_t counter) {
    std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                              static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }
  /// Word i of a stream.
  static constexpr uint32_t word(uint64_t key, uint64_t stream, uint64_t i) {
    return block(key, stream, i / 4)[i % 4];
  }
};

/// Uniform in [0, 1) with 24 bits.
constexpr float to_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
/// Uniform in [0, 1) with 53 bits.
constexpr double to_uniform(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

/// Hands out streams: each use of randomness takes the next one. Its whole state is two numbers,
/// which a checkpoint saves.
class Generator {
 public:
  explicit Generator(uint64_t seed = 1) : seed_(seed) {}
  uint64_t seed() const { return seed_; }
  /// Number of streams taken so far.
  uint64_t position() const { return next_; }
  void set_position(uint64_t position) { next_ = position; }
  uint64_t take_stream() { return next_++; }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

/// A standard normal number: number `i` of a stream (Box and Muller, in double).
double normal_at(uint64_t seed, uint64_t stream, uint64_t i);
/// A uniform number in [0, 1): number `i` of a stream.
double uniform_at(uint64_t seed, uint64_t stream, uint64_t i);

}  // namespace tally
