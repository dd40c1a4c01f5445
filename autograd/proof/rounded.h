#pragma once
#include <cmath>

#include "core/op.h"

namespace tally {

/// The rounding of one element type: what `Rounded` reckons with on this thread.
struct Rounding {
  double unit = 0;     // unit roundoff of the accumulator
  double storage = 0;  // of the storage type
  double tiny = 0;     // smallest normal number: below it a result may be flushed to zero
};
inline Rounding& rounding() {
  thread_local Rounding r;
  return r;
}
/// Throws Error for a type that nothing is computed in.
Rounding rounding_of(DType dtype);

/// The magnitudes, but 0 and infinity, that values of this thread's reference loops had since it was
/// set to {}: beyond what the accumulator holds, the formula overflows or underflows it.
struct RoundedRange {
  double least = INFINITY, largest = 0;
};
inline RoundedRange& rounded_range() {
  thread_local RoundedRange range;
  return range;
}
inline void note_range(double value) {
  const double size = std::fabs(value);
  if (size == 0 || !std::isfinite(size)) return;
  RoundedRange& r = rounded_range();
  if (size > r.largest) r.largest = size;
  if (size < r.least) r.least = size;
}

// A value and what rounding may have done to it, whatever the order in which sums were taken:
// running error analysis (Wilkinson 1986; Higham, Accuracy and Stability of Numerical Algorithms,
// sec. 3.3 and 4.2). A sum of n terms is off by at most n u sum|terms| in any order, so a Rounded
// carries the additions and the sum of |terms| of the sum that it stands for; any other operation
// makes it one term, and what had gathered goes on to first order through the derivative of the
// operation.
struct Rounded {
  double v = 0;          // the value, in float64
  double inherited = 0;  // bound on the error that the terms brought along
  double terms = 0;      // sum of |terms|
  double additions = 0;
  Rounded() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit(false) Rounded(T value) : Rounded(term(static_cast<double>(value), 0)) {
    // A constant is rounded to the accumulator like everything else.
    if (rounding().unit > 1e-10 && static_cast<double>(static_cast<float>(v)) != v) {
      inherited = rounding().unit * std::fabs(v);
    }
  }
  /// Bound on the error, to first order.
  double error() const {
    return std::isfinite(v) ? inherited + additions * rounding().unit * terms : 0;
  }
  static Rounded term(double value, double error) {
    Rounded r;
    r.v = value;
    if (!std::isfinite(value)) return r;
    note_range(value);
    r.terms = std::fabs(value);
    r.inherited = std::isfinite(error) ? error : INFINITY;
    return r;
  }
  /// The result of one rounded operation.
  static Rounded operation(double value, double error) {
    return term(value, error + rounding().unit * std::fabs(value) + rounding().tiny);
  }
  explicit operator double() const { return v; }
};

/// Storage of half the width: what is stored is rounded once more.
struct RoundedHalf {
  double v = 0, inherited = 0;
  RoundedHalf() = default;
  explicit RoundedHalf(const Rounded& r)
      : v(r.v),
        inherited(r.error() + (std::isfinite(r.v) ? rounding().storage * std::fabs(r.v) : 0)) {}
  static RoundedHalf exact(double value) {
    RoundedHalf r;
    r.v = value;
    return r;
  }
  explicit operator Rounded() const { return Rounded::term(v, inherited); }
  explicit operator double() const { return v; }
};
static_assert(sizeof(Rounded) == size_of(DType::rounded) &&
              sizeof(RoundedHalf) == size_of(DType::rounded_half));

inline Rounded operator-(const Rounded& a) {
  Rounded r = a;
  r.v = -a.v;
  return r;
}
inline Rounded operator+(const Rounded& a, const Rounded& b) {
  Rounded r;
  r.v = a.v + b.v;
  if (!std::isfinite(r.v)) return r;
  note_range(r.v);
  r.inherited = a.inherited + b.inherited;
  r.terms = a.terms + b.terms;
  r.additions = a.additions + b.additions + 1;
  return r;
}
inline Rounded operator-(const Rounded& a, const Rounded& b) { return a + -b; }
inline Rounded operator*(const Rounded& a, const Rounded& b) {
  const double ea = a.error(), eb = b.error();
  return Rounded::operation(a.v * b.v, std::fabs(a.v) * eb + std::fabs(b.v) * ea + ea * eb);
}
inline Rounded operator/(const Rounded& a, const Rounded& b) {
  const double q = a.v / b.v;
  return Rounded::operation(q, (a.error() + std::fabs(q) * b.error()) / std::fabs(b.v));
}
inline Rounded& operator+=(Rounded& a, const Rounded& b) { return a = a + b; }
inline Rounded& operator-=(Rounded& a, const Rounded& b) { return a = a - b; }
inline Rounded& operator*=(Rounded& a, const Rounded& b) { return a = a * b; }
inline bool operator<(const Rounded& a, const Rounded& b) { return a.v < b.v; }
inline bool operator>(const Rounded& a, const Rounded& b) { return a.v > b.v; }
inline bool operator<=(const Rounded& a, const Rounded& b) { return a.v <= b.v; }
inline bool operator>=(const Rounded& a, const Rounded& b) { return a.v >= b.v; }
inline bool operator==(const Rounded& a, const Rounded& b) { return a.v == b.v; }

// A function value with the slope of the function. Kernels may be off by 4 units in the last place,
// which are up to 8 unit roundoffs.
inline Rounded rounded_function(double value, double slope, const Rounded& a) {
  const double moved = a.error() == 0 ? 0 : std::fabs(slope) * a.error();
  return Rounded::operation(value, moved + 7 * rounding().unit * std::fabs(value));
}
inline Rounded sqrt(const Rounded& a) {
  const double r = std::sqrt(a.v);
  // Near 0 the slope is infinite, and the root of the error is the better bound.
  const double moved =
      r > 0 ? std::fmin(a.error() / r, std::sqrt(a.error())) : std::sqrt(a.error());
  return Rounded::operation(r, moved);
}
inline Rounded exp(const Rounded& a) {
  const double f = std::exp(a.v);
  // exp(e) - 1 and not e: the error of a large exponent may be large itself.
  return Rounded::operation(f, f * (std::expm1(a.error()) + 7 * rounding().unit));
}
inline Rounded log(const Rounded& a) { return rounded_function(std::log(a.v), 1 / a.v, a); }
inline Rounded tanh(const Rounded& a) {
  const double t = std::tanh(a.v);
  return rounded_function(t, 1 - t * t, a);
}
inline Rounded sin(const Rounded& a) { return rounded_function(std::sin(a.v), std::cos(a.v), a); }
inline Rounded cos(const Rounded& a) { return rounded_function(std::cos(a.v), std::sin(a.v), a); }
inline Rounded erf(const Rounded& a) {
  return rounded_function(std::erf(a.v), 2 / std::sqrt(M_PI) * std::exp(-a.v * a.v), a);
}
inline Rounded erfc(const Rounded& a) {
  return rounded_function(std::erfc(a.v), -2 / std::sqrt(M_PI) * std::exp(-a.v * a.v), a);
}
inline Rounded pow(const Rounded& a, double p) {
  return rounded_function(std::pow(a.v, p), p * std::pow(a.v, p - 1), a);
}
inline Rounded abs(const Rounded& a) { return a.v < 0 ? -a : a; }
inline bool isfinite(const Rounded& a) { return std::isfinite(a.v); }

}  // namespace tally
