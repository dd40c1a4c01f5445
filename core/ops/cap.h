#pragma once
#include <limits>

#include "core/op.h"

namespace tally::ops {

/// Whether f32, in which most loops compute, holds a cap with all its digits: one below the smallest
/// normal number would round to 0 there and cap nothing, one above the largest to infinity.
inline bool holds_cap(double cap) {
  using Limits = std::numeric_limits<float>;
  return cap >= double(Limits::min()) && cap <= double(Limits::max());
}

/// Throws Error, naming the op and `what`, unless a soft cap is such a number.
inline void check_cap(const char* op, const char* what, double cap) {
  check(std::isfinite(cap) && cap > 0, op, ": ", what, " must be a finite number above 0; got ",
        cap, in_module(), "; leave it out for none");
  check(holds_cap(cap), op, ": ", what,
        " must be a normal number of f32, 1.2e-38 to 3.4e38: others round to 0 or infinity; got ",
        cap, in_module());
}

}  // namespace tally::ops
