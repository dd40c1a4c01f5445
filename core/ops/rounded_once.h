#pragma once
#include <type_traits>

namespace tally::ops {

struct RoundedPair {
  float value, slope;
};
/// A function whose floats are worked on in double and rounded once: at -80 half a unit in the last
/// place of an exponent is 32 of the result's. The other scalars are worked on as they are.
template <class F>
struct RoundedOnce {
  static constexpr double value_flops = F::value_flops, pair_flops = F::pair_flops;
  F function;
  template <class A>
  A value(const A& x) const {
    if constexpr (std::is_same_v<A, float>) {
      return static_cast<float>(function.value(static_cast<double>(x)));
    } else {
      return function.value(x);
    }
  }
  template <class A>
  auto pair(const A& x) const {
    if constexpr (std::is_same_v<A, float>) {
      const auto wide = function.pair(static_cast<double>(x));
      return RoundedPair{static_cast<float>(wide.value), static_cast<float>(wide.slope)};
    } else {
      return function.pair(x);
    }
  }
};

}  // namespace tally::ops
