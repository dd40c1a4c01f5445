#pragma once
// Elementary functions against double precision, over any part of all floats.
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/isa.h"
#include "core/ops/activation_functions.h"
#include "core/parallel.h"

namespace tally {

/// What a function should give, in double precision, and the size that its error is a part of: that
/// of the result, or of the larger of two terms that cancel near a zero of a slope.
struct Exact {
  double value, size;
};

/// One function: by the loops that define ops, by vector code, and in double precision.
struct Elementary {
  std::string name;
  double bound;            // ULP where the result is a normal number, of vector code
  double reference_bound;  // of the loops in f32; 0: they cancel, which rounded.h reckons with
  std::function<void(int64_t n, const float* x, float* y)> reference;
  std::function<void(const cpu::IsaTable&, int64_t n, const float* x, float* y)> vector;
  Exact (*exact)(double x);
  Exact (*tiny)(double x);  // the same for |x| < 2^-13, from the series: half of all floats
};

/// The largest error found, in units of the last place.
struct UlpError {
  double worst = 0;
  float at = 0;
  int64_t values = 0;
};

namespace ulp_detail {

inline Exact plain(double v) { return {v, std::fabs(v)}; }
inline Exact two(double a, double b) {
  return {a + b, std::fmax(std::fabs(a + b), std::fmax(std::fabs(a), std::fabs(b)))};
}
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
/// x f, where f is 0 far out and x may be infinite.
inline double times(double x, double f) { return f == 0 ? std::copysign(0.0, x) : x * f; }
constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715;
constexpr double kDensity = 0.39894228040143267794;
inline double gelu_argument(double x) { return 2 * kRoot * x * (1 + kCubic * x * x); }
inline double gelu_argument_slope(double x) { return 2 * kRoot * (1 + 3 * kCubic * x * x); }
inline double density(double x) { return kDensity * std::exp(-0.5 * x * x); }

template <class F>
auto each(F f) {
  return [f](int64_t n, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  };
}
inline auto mapped(cpu::MathFunction f) {
  return [f](const cpu::IsaTable& t, int64_t n, const float* x, float* y) { t.map(f, n, x, y); };
}
inline auto unit(cpu::Unit u) {
  return [u](const cpu::IsaTable& t, int64_t n, const float* x, float* y) {
    t.activation_forward(u, 1, n, x, y, false);
  };
}
inline auto unit_slope(cpu::Unit u) {
  return [u](const cpu::IsaTable& t, int64_t n, const float* x, float* y) {
    std::vector<float> one(static_cast<size_t>(n), 1.0F);
    t.activation_backward(u, 1, n, one.data(), x, y, false);
  };
}

/// The error of `got` in units of the last place of `exact.size`; of a subnormal result 0 up to the
/// smallest normal number; infinite where one is NaN, or infinite, and the other is not.
inline double error_of(float got, const Exact& exact) {
  const double limit = 0x1.ffffffp+127;  // from here on the nearest float is infinity
  if (std::isnan(exact.value)) return std::isnan(got) ? 0 : INFINITY;
  if (std::fabs(exact.value) >= limit)
    return std::isinf(got) && std::signbit(got) == std::signbit(exact.value) ? 0 : INFINITY;
  const double off = std::fabs(static_cast<double>(got) - exact.value);
  if (off <= static_cast<double>(FLT_MIN) && std::fabs(exact.value) < static_cast<double>(FLT_MIN))
    return 0;
  const double size = std::fmax(exact.size, static_cast<double>(FLT_MIN));
  const double unit =
      std::bit_cast<double>(std::bit_cast<uint64_t>(size) & (uint64_t{0x7ff} << 52));
  const double error = off / (unit * 0x1p-23);
  return std::isnan(error) ? INFINITY : error;
}

}  // namespace ulp_detail

/// The functions whose accuracy docs/proofs.md states.
inline const std::vector<Elementary>& elementary_functions() {
  using namespace ulp_detail;
  using M = cpu::MathFunction;
  using U = cpu::Unit;
  static const std::vector<Elementary> list = {
      {"exp", 2, 2, each([](float x) { return std::exp(x); }), mapped(M::exp),
       [](double x) { return plain(std::exp(x)); },
       [](double x) { return plain(1 + x * (1 + x / 2 * (1 + x / 3))); }},
      {"log", 2, 2, each([](float x) { return std::log(x); }), mapped(M::log),
       [](double x) { return plain(std::log(x)); }, nullptr},
      {"tanh", 2, 2, each([](float x) { return std::tanh(x); }), mapped(M::tanh),
       [](double x) { return plain(std::tanh(x)); },
       [](double x) { return plain(x * (1 - x * x / 3)); }},
      {"erf", 2, 2, each([](float x) { return std::erf(x); }), mapped(M::erf),
       [](double x) { return plain(std::erf(x)); },
       [](double x) { return plain(M_2_SQRTPI * x * (1 - x * x / 3)); }},
      {"sigmoid", 4, 4, each([](float x) { return ops::Sigmoid{}.value(x); }), unit(U::sigmoid),
       [](double x) { return plain(logistic(x)); }, [](double x) { return plain(0.5 + x / 4); }},
      {"sigmoid slope", 4, 4, each([](float x) { return ops::Sigmoid{}.pair(x).slope; }),
       unit_slope(U::sigmoid), [](double x) { return plain(logistic(x) * logistic(-x)); },
       [](double x) { return plain(0.25 - x * x / 16); }},
      {"silu", 4, 4, each([](float x) { return ops::Silu{}.value(x); }), unit(U::silu),
       [](double x) { return plain(times(x, logistic(x))); },
       [](double x) { return plain(x * (0.5 + x / 4)); }},
      {"silu slope", 4, 5, each([](float x) { return ops::Silu{}.pair(x).slope; }),
       unit_slope(U::silu),
       [](double x) { return two(logistic(x), times(x, logistic(x) * logistic(-x))); },
       [](double x) { return two(0.5 + x / 4, x / 4); }},
      {"gelu", 4, 0, each([](float x) { return ops::Gelu{}.value(x); }), unit(U::gelu),
       [](double x) { return plain(times(x, normal_cdf(x))); },
       [](double x) { return plain(x * (0.5 + kDensity * x)); }},
      {"gelu slope", 4, 0, each([](float x) { return ops::Gelu{}.pair(x).slope; }),
       unit_slope(U::gelu), [](double x) { return two(normal_cdf(x), times(x, density(x))); },
       [](double x) { return two(0.5 + kDensity * x, kDensity * x); }},
      {"gelu_tanh", 4, 0, each([](float x) { return ops::GeluTanh{}.value(x); }),
       unit(U::gelu_tanh), [](double x) { return plain(times(x, logistic(gelu_argument(x)))); },
       [](double x) { return plain(x * (0.5 + kRoot / 2 * x)); }},
      {"gelu_tanh slope", 4, 0, each([](float x) { return ops::GeluTanh{}.pair(x).slope; }),
       unit_slope(U::gelu_tanh),
       [](double x) {
         const double s = logistic(gelu_argument(x)), rest = logistic(-gelu_argument(x));
         const double both = s * rest;
         return two(s, both == 0 ? 0 : x * both * gelu_argument_slope(x));
       },
       [](double x) { return two(0.5 + kRoot / 2 * x, kRoot / 2 * x); }},
  };
  return list;
}

/// Every `step`-th float whose bits lie in [first, last), by `f`. Subnormal arguments, which vector
/// code takes for 0, are left out where `flushed`.
template <class F>
UlpError ulp_error(const Elementary& e, uint64_t first, uint64_t last, uint64_t step, bool flushed,
                   F&& f) {
  constexpr size_t kBlock = 4096;
  std::array<float, kBlock> x{}, y{};
  UlpError found;
  for (uint64_t at = first; at < last;) {
    size_t n = 0;
    for (; n < kBlock && at < last; at += step) {
      const float v = std::bit_cast<float>(static_cast<uint32_t>(at));
      if (!(flushed && v != 0 && std::fabs(v) < FLT_MIN)) x[n++] = v;
    }
    f(static_cast<int64_t>(n), x.data(), y.data());
    for (size_t i = 0; i < n; ++i) {
      const auto v = static_cast<double>(x[i]);
      const Exact exact = e.tiny && std::fabs(v) < 0x1p-13 ? e.tiny(v) : e.exact(v);
      const double error = ulp_detail::error_of(y[i], exact);
      if (error <= found.worst) continue;
      found.worst = error;
      found.at = x[i];
    }
    found.values += static_cast<int64_t>(n);
  }
  return found;
}

}  // namespace tally
