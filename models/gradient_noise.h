#pragma once
#include <cstdint>

namespace tally {

/// What a step of n micro-batches says of the noise of its gradient: McCandlish et al. 2018,
/// arXiv:1812.06162, appendix A.1, with batches of 1 and n micro-batches (lecture claim L82). Means
/// over many steps estimate well, those of one step scatter and may lie below 0.
struct GradientNoise {
  double first_squares = 0;  // |first micro-batch's share of the gradient|^2
  double squares = 0;        // |gradient|^2
  int64_t passes = 1;        // n

  /// |mean gradient|^2.
  double square() const { return (n() * squares - n() * n() * first_squares) / (n() - 1); }
  /// Trace of the covariance of a micro-batch's gradient.
  double trace() const { return (n() * n() * first_squares - squares) / (1 - 1 / n()); }

 private:
  double n() const { return static_cast<double>(passes); }
};

}  // namespace tally
