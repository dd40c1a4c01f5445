#pragma once
// Small tensors by hand, and what is in them.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "autograd/tape.h"
#include "backends/register_all.h"
#include "core/ledger.h"
#include "tests/places.h"

namespace tally {

inline constexpr double kInf = INFINITY;

/// Registers the backends before a test.
struct Setup {
  Setup() { register_all(); }
};

inline Tensor f64(std::initializer_list<double> v, const Shape& s) {
  return from_host<double>(v, s, kReference);
}
inline Tensor i64(std::initializer_list<int64_t> v, const Shape& s) {
  return from_host<int64_t>(v, s, kReference);
}
inline Tensor leaf(std::initializer_list<double> v, const Shape& s) {
  Tensor t = f64(v, s);
  return t.requires_grad_();
}
inline Tensor ones(const Shape& s, DType dtype = DType::f64) {
  return full(s, 1, dtype, kReference);
}

using Numbers = std::vector<double>;
inline Numbers numbers(const Tensor& t) { return to_doubles(t); }
inline void check_close(const Tensor& t, const Numbers& expected, double tolerance = 1e-9) {
  const Numbers ours = numbers(t);
  REQUIRE(ours.size() == expected.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    INFO("element " << i << ": " << ours[i] << ", expected " << expected[i]);
    CHECK((ours[i] == expected[i] || std::fabs(ours[i] - expected[i]) <= tolerance ||
           (std::isnan(ours[i]) && std::isnan(expected[i]))));
  }
}

/// The same for other element types: relative to each number.
inline void check_near(const Tensor& t, const Numbers& expected, double bound) {
  const Numbers ours = numbers(t);
  REQUIRE(ours.size() == expected.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    INFO("element " << i << ": " << ours[i] << ", expected " << expected[i]);
    CHECK((ours[i] == expected[i] ||
           std::fabs(ours[i] - expected[i]) <= bound * std::fabs(expected[i]) ||
           (std::isnan(ours[i]) && std::isnan(expected[i]))));
  }
}

}  // namespace tally
