#pragma once
#include <cstdint>

namespace tally::cpu {

/// What is taken together of the elements x of a group; `shift` is a number of the group's own.
enum class Fold : uint8_t {
  sum,
  squares,   ///< the sum of (x - shift)^2
  exps,      ///< the sum of exp(x - shift)
  matches,   ///< how many x are equal to shift
  largest,   ///< a NaN wins
  smallest,  ///< a NaN wins
};

/// What an element becomes when the gradient of a group is spread over it.
enum class Spread : uint8_t {
  same,     ///< factor
  linear,   ///< factor (x - shift)
  exp,      ///< factor exp(x - shift)
  matches,  ///< factor where x = shift, else 0
};

}  // namespace tally::cpu
