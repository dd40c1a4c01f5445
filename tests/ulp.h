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
  double reference_bound;  // of the loops in f32
  std::function<void(int64_t n, const float* x, float* y)> reference;
  std::function<void(const cpu::IsaTable&, int64_t n, const float* x, float* y)> vector;
  void (*exact)(int64_t n, const float* x, Exact* y);
};

/// The largest error found, in units of the last place; 0.5 where every result is the nearest float.
struct UlpError {
  double worst = 0.5;
  float at = 0;
  int64_t values = 0;
};

namespace ulp_detail {

inline Exact plain(double v) { return {v, std::fabs(v)}; }
inline Exact two(double a, double b) {
  const double sum = std::fabs(a + b), first = std::fabs(a), second = std::fabs(b);
  const double larger = first > second ? first : second;
  return {a + b, sum > larger ? sum : larger};
}
/// s(x) = 1 / (1 + e^-x) and s(x) s(-x), its slope.
struct Logistic {
  double value, slope;
};
inline Logistic logistic(double x) {
  const double e = std::exp(-std::fabs(x)), t = 1 / (1 + e);
  return {x < 0 ? e * t : t, e * t * t};
}
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
/// x f, where f is 0 far out and x may be infinite.
inline double times(double x, double f) { return f == 0 ? std::copysign(0.0, x) : x * f; }
constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715;
constexpr double kDensity = 0.39894228040143267794, kQuick = 1.702;
inline double gelu_argument(double x) { return 2 * kRoot * x * (1 + kCubic * x * x); }
inline double gelu_argument_slope(double x) { return 2 * kRoot * (1 + 3 * kCubic * x * x); }
/// d (x s(z)) / dx, s the sigmoid.
inline Exact sigmoid_slope(double x, double z, double z_slope) {
  const Logistic s = logistic(z);
  return two(s.value, s.slope == 0 ? 0 : x * s.slope * z_slope);
}
inline double density(double x) { return kDensity * std::exp(-0.5 * x * x); }

/// `near` for any x, `tiny` for |x| < 2^-13 (the series: half of all floats), `far` for 256 and
/// beyond, where all but log have their limits. The x ascend in their bits.
template <class Near, class Tiny, class Far>
auto exactly(Near, Tiny, Far) {
  return [](int64_t n, const float* x, Exact* y) {
    const auto all = [&](auto f) {
      for (int64_t i = 0; i < n; ++i) y[i] = f(static_cast<double>(x[i]));
    };
    const float first = std::fabs(x[0]), last = std::fabs(x[n - 1]);
    const bool one_sign = std::signbit(x[0]) == std::signbit(x[n - 1]);
    if (one_sign && last < 0x1p-13F) return all(Tiny{});
    if (one_sign && first >= 256 && last >= 256) return all(Far{});  // no NaN
    all(Near{});
  };
}
template <class F>
auto each(F f) {
  return [f](int64_t n, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  };
}
inline auto value_of(ops::ActivationKind kind) {
  return [kind](int64_t n, const float* x, float* y) {
    ops::with_activation(kind, kQuick, [&](auto f) {
      for (int64_t i = 0; i < n; ++i) y[i] = f.value(x[i]);
    });
  };
}
inline auto slope_of(ops::ActivationKind kind) {
  return [kind](int64_t n, const float* x, float* y) {
    ops::with_activation(kind, kQuick, [&](auto f) {
      for (int64_t i = 0; i < n; ++i) y[i] = f.pair(x[i]).slope;
    });
  };
}
inline auto mapped(cpu::MathFunction f) {
  return [f](const cpu::IsaTable& t, int64_t n, const float* x, float* y) { t.map(f, n, x, y); };
}
inline auto unit(cpu::Unit u) {
  return [u](const cpu::IsaTable& t, int64_t n, const float* x, float* y) {
    t.activation_forward(u, kQuick, n, x, y, false);
  };
}
inline auto unit_slope(cpu::Unit u) {
  return [u](const cpu::IsaTable& t, int64_t n, const float* x, float* y) {
    std::vector<float> one(static_cast<size_t>(n), 1.0F);
    t.activation_backward(u, kQuick, n, one.data(), x, y, false);
  };
}

inline Exact at_zero(const Elementary& e, float sign) {
  const float zero = std::copysign(0.0F, sign);
  Exact exact{};
  e.exact(1, &zero, &exact);
  return exact;
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
  using K = ops::ActivationKind;
  const auto sign = [](double x) { return plain(std::copysign(1.0, x)); };
  const auto right = [](double x) { return plain(x > 0 ? x : 0.0); };
  const auto step = [](double x) { return plain(x > 0 ? 1.0 : 0.0); };
  const auto zero = [](double) { return plain(0); };
  const auto log = [](double x) { return plain(std::log(x)); };
  static const std::vector<Elementary> list = {
      {"exp", 2, 2, each([](float x) { return std::exp(x); }), mapped(M::exp),
       exactly([](double x) { return plain(std::exp(x)); },
               [](double x) { return plain(1 + x * (1 + x / 2 * (1 + x / 3))); },
               [](double x) { return plain(x > 0 ? INFINITY : 0.0); })},
      {"log", 2, 2, each([](float x) { return std::log(x); }), mapped(M::log),
       exactly(log, log, log)},
      {"tanh", 2, 1, value_of(K::tanh), mapped(M::tanh),
       exactly([](double x) { return plain(std::tanh(x)); },
               [](double x) { return plain(x * (1 - x * x / 3)); }, sign)},
      {"tanh slope", 2, 1, slope_of(K::tanh), unit_slope(U::tanh),
       exactly([](double x) { return plain(4 * logistic(2 * x).slope); },
               [](double x) { return plain(1 - x * x); }, zero)},
      {"erf", 2, 2, each([](float x) { return std::erf(x); }), mapped(M::erf),
       exactly([](double x) { return plain(std::erf(x)); },
               [](double x) { return plain(M_2_SQRTPI * x * (1 - x * x / 3)); }, sign)},
      {"sigmoid", 4, 1, value_of(K::sigmoid), unit(U::sigmoid),
       exactly([](double x) { return plain(logistic(x).value); },
               [](double x) { return plain(0.5 + x / 4); }, step)},
      {"sigmoid slope", 4, 1, slope_of(K::sigmoid), unit_slope(U::sigmoid),
       exactly([](double x) { return plain(logistic(x).slope); },
               [](double x) { return plain(0.25 - x * x / 16); }, zero)},
      {"silu", 4, 1, value_of(K::silu), unit(U::silu),
       exactly([](double x) { return plain(times(x, logistic(x).value)); },
               [](double x) { return plain(x * (0.5 + x / 4)); }, right)},
      {"silu slope", 4, 1, slope_of(K::silu), unit_slope(U::silu),
       exactly([](double x) { return sigmoid_slope(x, x, 1); },
               [](double x) { return two(0.5 + x / 4, x / 4); }, step)},
      {"quick gelu", 4, 1, value_of(K::swish), unit(U::swish),
       exactly([](double x) { return plain(times(x, logistic(kQuick * x).value)); },
               [](double x) { return plain(x * (0.5 + kQuick / 4 * x)); }, right)},
      {"quick gelu slope", 4, 1, slope_of(K::swish), unit_slope(U::swish),
       exactly([](double x) { return sigmoid_slope(x, kQuick * x, kQuick); },
               [](double x) { return two(0.5 + kQuick / 4 * x, kQuick / 4 * x); }, step)},
      {"gelu", 4, 1, value_of(K::gelu), unit(U::gelu),
       exactly([](double x) { return plain(times(x, normal_cdf(x))); },
               [](double x) { return plain(x * (0.5 + kDensity * x)); }, right)},
      {"gelu slope", 4, 1, slope_of(K::gelu), unit_slope(U::gelu),
       exactly([](double x) { return two(normal_cdf(x), times(x, density(x))); },
               [](double x) { return two(0.5 + kDensity * x, kDensity * x); }, step)},
      {"gelu_tanh", 4, 1, value_of(K::gelu_tanh), unit(U::gelu_tanh),
       exactly([](double x) { return plain(times(x, logistic(gelu_argument(x)).value)); },
               [](double x) { return plain(x * (0.5 + kRoot / 2 * x)); }, right)},
      {"gelu_tanh slope", 4, 1, slope_of(K::gelu_tanh), unit_slope(U::gelu_tanh),
       exactly([](double x) { return sigmoid_slope(x, gelu_argument(x), gelu_argument_slope(x)); },
               [](double x) { return two(0.5 + kRoot / 2 * x, kRoot / 2 * x); }, step)},
      {"softplus", 4, 4, value_of(K::softplus), unit(U::softplus),
       exactly(
           [](double x) { return plain(std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))); },
           [](double x) { return plain(M_LN2 + x * (0.5 + x / 8)); }, right)},
      {"softplus slope", 4, 4, slope_of(K::softplus), unit_slope(U::softplus),
       exactly([](double x) { return plain(logistic(x).value); },
               [](double x) { return plain(0.5 + x / 4); }, step)},
  };
  return list;
}

/// What computes a function: `flushed` where a subnormal argument must give what 0 of its sign gives,
/// as in vector code.
struct Implementation {
  std::string name;
  bool flushed;
  std::function<void(int64_t n, const float* x, float* y)> compute;
};

/// The largest error of each implementation over every `step`-th float whose bits lie in
/// [first, last).
inline std::vector<UlpError> ulp_errors(const Elementary& e, uint64_t first, uint64_t last,
                                        uint64_t step, const std::vector<Implementation>& by) {
  constexpr size_t kBlock = 4096;
  std::array<float, kBlock> x{}, y{};
  std::array<Exact, kBlock> exact{};
  std::vector<UlpError> found(by.size());
  for (uint64_t at = first; at < last;) {
    size_t n = 0;
    for (; n < kBlock && at < last; at += step)
      x[n++] = std::bit_cast<float>(static_cast<uint32_t>(at));
    e.exact(static_cast<int64_t>(n), x.data(), exact.data());
    for (size_t k = 0; k < by.size(); ++k) {
      by[k].compute(static_cast<int64_t>(n), x.data(), y.data());
      for (size_t i = 0; i < n; ++i) {
        if (y[i] == static_cast<float>(exact[i].value)) continue;
        const bool as_zero = by[k].flushed && std::fabs(x[i]) < FLT_MIN;
        const double error =
            ulp_detail::error_of(y[i], as_zero ? ulp_detail::at_zero(e, x[i]) : exact[i]);
        if (error > found[k].worst) found[k] = {error, x[i], found[k].values};
      }
      found[k].values += static_cast<int64_t>(n);
    }
  }
  return found;
}

}  // namespace tally
