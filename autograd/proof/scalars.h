#pragma once
#include <cmath>

#include "core/op.h"

namespace tally {

// The scalars that prove an op by running its own reference loops on them.

/// A value and its derivative along one direction: forward-mode differentiation. Comparisons look
/// at the value, so a kink takes the side that the loops take.
struct Dual {
  double v = 0, d = 0;
  Dual() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit(false) Dual(T value) : v(static_cast<double>(value)) {}
  Dual(double value, double derivative) : v(value), d(derivative) {}
  explicit operator double() const { return v; }
};
inline Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
inline Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
inline Dual operator-(Dual a) { return {-a.v, -a.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
inline Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}
inline Dual& operator+=(Dual& a, Dual b) { return a = a + b; }
inline Dual& operator-=(Dual& a, Dual b) { return a = a - b; }
inline Dual& operator*=(Dual& a, Dual b) { return a = a * b; }
inline bool operator<(Dual a, Dual b) { return a.v < b.v; }
inline bool operator>(Dual a, Dual b) { return a.v > b.v; }
inline bool operator<=(Dual a, Dual b) { return a.v <= b.v; }
inline bool operator>=(Dual a, Dual b) { return a.v >= b.v; }
inline bool operator==(Dual a, Dual b) { return a.v == b.v; }
// f(a) with slope s; a direction of 0 gives 0 even where the slope is infinite.
inline Dual chain(double f, double slope, Dual a) { return {f, a.d == 0 ? 0 : slope * a.d}; }
inline Dual sqrt(Dual a) {
  const double r = std::sqrt(a.v);
  return chain(r, 0.5 / r, a);
}
inline Dual exp(Dual a) { return chain(std::exp(a.v), std::exp(a.v), a); }
inline Dual log(Dual a) { return chain(std::log(a.v), 1 / a.v, a); }
inline Dual tanh(Dual a) {
  const double t = std::tanh(a.v);
  return chain(t, 1 - t * t, a);
}
inline Dual sin(Dual a) { return chain(std::sin(a.v), std::cos(a.v), a); }
inline Dual cos(Dual a) { return chain(std::cos(a.v), -std::sin(a.v), a); }
inline Dual erf(Dual a) {
  return chain(std::erf(a.v), 2 / std::sqrt(M_PI) * std::exp(-a.v * a.v), a);
}
inline Dual erfc(Dual a) {
  return chain(std::erfc(a.v), -2 / std::sqrt(M_PI) * std::exp(-a.v * a.v), a);
}
inline Dual abs(Dual a) { return a.v < 0 ? -a : a; }
inline Dual pow(Dual a, double p) { return chain(std::pow(a.v, p), p * std::pow(a.v, p - 1), a); }
inline bool isfinite(Dual a) { return std::isfinite(a.v); }

/// Operations and accesses seen since reset(), on this thread.
struct Counts {
  double flops = 0;
  double gathered = 0, scattered = 0;  // bytes in rows that an index named
  std::vector<const int64_t*> indices, written_indices;
  std::vector<const uint8_t*> flags;
};
inline Counts& counts() {
  thread_local Counts c;
  return c;
}

/// A value that counts what is done with it, and remembers whether it was read and written: the
/// same type serves in memory and in registers.
template <class Value>
struct CountedOf {
  Value v = 0;
  mutable bool read = false;
  bool written = false;
  mutable bool charged = false;  // its row is charged per index, not per element
  CountedOf() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit(false) CountedOf(T value) : v(static_cast<Value>(value)) {}
  CountedOf(const CountedOf& o) : v(o.look()) {}
  CountedOf& operator=(const CountedOf& o) {
    v = o.look();
    if (!charged) written = true;
    return *this;
  }
  Value look() const {
    if (!charged) read = true;
    return v;
  }
  explicit operator double() const { return static_cast<double>(look()); }
};
struct Counted : CountedOf<double> {
  using CountedOf::CountedOf;
};
struct CountedHalf : CountedOf<float> {
  using CountedOf::CountedOf;
  CountedHalf() = default;
  explicit CountedHalf(const Counted& c) : CountedOf(static_cast<float>(c.look())) {}
  explicit operator Counted() const { return Counted(static_cast<double>(look())); }
};
static_assert(sizeof(Dual) == size_of(DType::dual) && sizeof(Counted) == size_of(DType::counted) &&
              sizeof(CountedHalf) == size_of(DType::counted_half));

inline Counted counted(double v) {
  counts().flops += 1;
  return Counted(v);
}
inline Counted operator+(const Counted& a, const Counted& b) {
  return counted(a.look() + b.look());
}
inline Counted operator-(const Counted& a, const Counted& b) {
  return counted(a.look() - b.look());
}
inline Counted operator*(const Counted& a, const Counted& b) {
  return counted(a.look() * b.look());
}
inline Counted operator/(const Counted& a, const Counted& b) {
  return counted(a.look() / b.look());
}
inline Counted operator-(const Counted& a) { return Counted(-a.look()); }
inline Counted& operator+=(Counted& a, const Counted& b) { return a = a + b; }
inline Counted& operator-=(Counted& a, const Counted& b) { return a = a - b; }
inline Counted& operator*=(Counted& a, const Counted& b) { return a = a * b; }
inline bool operator<(const Counted& a, const Counted& b) { return a.look() < b.look(); }
inline bool operator>(const Counted& a, const Counted& b) { return a.look() > b.look(); }
inline bool operator<=(const Counted& a, const Counted& b) { return a.look() <= b.look(); }
inline bool operator>=(const Counted& a, const Counted& b) { return a.look() >= b.look(); }
inline bool operator==(const Counted& a, const Counted& b) { return a.look() == b.look(); }
inline Counted sqrt(const Counted& a) { return counted(std::sqrt(a.look())); }
inline Counted exp(const Counted& a) { return counted(std::exp(a.look())); }
inline Counted log(const Counted& a) { return counted(std::log(a.look())); }
inline Counted tanh(const Counted& a) { return counted(std::tanh(a.look())); }
inline Counted sin(const Counted& a) { return counted(std::sin(a.look())); }
inline Counted cos(const Counted& a) { return counted(std::cos(a.look())); }
inline Counted erf(const Counted& a) { return counted(std::erf(a.look())); }
inline Counted erfc(const Counted& a) { return counted(std::erfc(a.look())); }
inline Counted pow(const Counted& a, double p) { return counted(std::pow(a.look(), p)); }
inline Counted abs(const Counted& a) { return Counted(std::fabs(a.look())); }
inline bool isfinite(const Counted& a) { return std::isfinite(a.look()); }

template <class T>
requires std::is_same_v<T, Counted> || std::is_same_v<T, CountedHalf>
struct Probe<T> {
  static void index(const int64_t* p) { counts().indices.push_back(p); }
  static void wrote_index(const int64_t* p) { counts().written_indices.push_back(p); }
  static void flag(const uint8_t* p) { counts().flags.push_back(p); }
  static void gather(const T* row, int64_t cols) {
    counts().gathered += static_cast<double>(cols) * sizeof(T);
    for (int64_t i = 0; i < cols; ++i) row[i].charged = true;
  }
  static void scatter(const T* row, int64_t cols) {
    counts().scattered += static_cast<double>(cols) * sizeof(T);
    for (int64_t i = 0; i < cols; ++i) row[i].charged = true;
  }
};

}  // namespace tally
