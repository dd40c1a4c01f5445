#pragma once
#include <cmath>
#include <limits>

namespace tally::test {

/// The larger of an error so far and the distance of two values, infinite where one alone is NaN:
/// std::max would forget it.
inline double worse(double so_far, double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return so_far;
  const double d = a == b ? 0 : std::fabs(a - b);
  return d <= so_far ? so_far : std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace tally::test
