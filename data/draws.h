#pragma once
#include <cstdint>

#include "core/random.h"

namespace tally {

/// Which sequence a random objective is applied to: what comes out is a function of these and the
/// tokens alone, whatever batch the sequence is in.
struct SequenceKey {
  uint64_t seed = 1, step = 0, sequence = 0;
};

/// The random numbers of one sequence. `purpose` keeps objectives with one seed apart.
class Draws {
 public:
  Draws(const SequenceKey& key, uint64_t purpose) : seed_(key.seed) {
    const auto mixed = Philox::block(key.seed ^ purpose, key.step, key.sequence);
    stream_ = uint64_t{mixed[0]} << 32 | mixed[1];
  }
  /// Block i: four words.
  std::array<uint32_t, 4> block(uint64_t i) const { return Philox::block(seed_, stream_, i); }
  /// Number i, uniform in [0, 1).
  double uniform(uint64_t i) const {
    const auto words = block(i);
    return to_uniform(words[0], words[1]);
  }

 private:
  uint64_t seed_, stream_;
};

/// A word as a number in 0..n-1, each as likely as any other to within n / 2^32.
inline int64_t below(uint32_t word, int64_t n) {
  return static_cast<int64_t>(uint64_t{word} * static_cast<uint64_t>(n) >> 32);
}

/// What a target is where nothing is to be guessed: the losses leave it out.
inline constexpr int64_t kIgnoredTarget = -100;

}  // namespace tally
