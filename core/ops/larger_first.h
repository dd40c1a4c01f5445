#pragma once
#include <vector>

#include "core/op.h"

namespace tally::ops {

/// The order of "the k largest": of two places of `value` the larger one comes first, equal ones in
/// the order of their places, a NaN before all numbers. So every backend chooses the same.
template <class A>
struct LargerFirst {
  const std::vector<A>& value;
  bool operator()(int64_t i, int64_t j) const {
    const A &a = value[static_cast<size_t>(i)], &b = value[static_cast<size_t>(j)];
    const bool nan_a = is_nan(a), nan_b = is_nan(b);
    if (nan_a != nan_b) return nan_a;
    if (!nan_a && (a > b || b > a)) return a > b;
    return i < j;
  }
};

}  // namespace tally::ops
