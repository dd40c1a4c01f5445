#include "core/random.h"

#include <cmath>
#include <numbers>

namespace tally {

double normal_at(uint64_t seed, uint64_t stream, uint64_t i) {
  const auto w = Philox::block(seed, stream, i);
  const double u = 1.0 - to_uniform(w[0], w[1]), v = to_uniform(w[2], w[3]);  // u in (0, 1]
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

double uniform_at(uint64_t seed, uint64_t stream, uint64_t i) {
  const auto w = Philox::block(seed, stream, i);
  return to_uniform(w[0], w[1]);
}

}  // namespace tally
