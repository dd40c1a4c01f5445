#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/features.h"
#include "backends/cpu/isa.h"
#include "core/parallel.h"

using namespace tally;
using namespace tally::cpu;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMin = std::numeric_limits<float>::min();

struct Function {
  MathFunction f;
  const char* name;
  double (*exact)(double);
  double max_ulp, max_ulp_baseline;  // without fused multiply-add
};
const Function kFunctions[] = {
    {MathFunction::exp, "exp", [](double x) { return std::exp(x); }, 1.2, 2},
    {MathFunction::log, "log", [](double x) { return std::log(x); }, 1.2, 2},
    {MathFunction::tanh, "tanh", [](double x) { return std::tanh(x); }, 2, 3},
    {MathFunction::erf, "erf", [](double x) { return std::erf(x); }, 2, 3},
    {MathFunction::normal_cdf, "normal_cdf",
     [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }, 5, 80},
    {MathFunction::sigmoid, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 3, 3},
    {MathFunction::silu, "silu", [](double x) { return x / (1 + std::exp(-x)); }, 3, 4},
};

template <class F>
void for_each_isa(const F& f) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (supported(isa)) f(isa_table(isa));
}

std::vector<float> apply(const IsaTable& table, MathFunction f, const std::vector<float>& x) {
  const FlushSubnormals flush;
  std::vector<float> y(x.size());
  table.map(f, static_cast<int64_t>(x.size()), x.data(), y.data());
  return y;
}
float apply(const IsaTable& table, MathFunction f, float x) {
  return apply(table, f, std::vector<float>{x})[0];
}

/// Floats of both signs over all normal exponents, denser where the functions bend.
std::vector<float> sweep() {
  std::vector<float> x;
  for (uint32_t b = 0x00800000u; b < 0x7f800000u; b += 32749) x.push_back(std::bit_cast<float>(b));
  for (double v = 1e-3; v < 110; v *= 1.00021) x.push_back(static_cast<float>(v));
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) x.push_back(-x[i]);
  return x;
}

double ulp_error(float got, double exact) {
  const double size = std::abs(exact);
  if (size > std::numeric_limits<float>::max()) return std::isinf(got) ? 0 : INFINITY;
  if (std::abs(got - exact) <= static_cast<double>(kMin)) return 0;  // flushed on the way
  const float nearest = static_cast<float>(size);
  const double ulp = std::nextafter(nearest, kInf) - static_cast<double>(nearest);
  return std::abs(got - exact) / ulp;
}

}  // namespace

TEST_CASE("simd: every function is accurate over all of f32") {
  const std::vector<float> x = sweep();
  for_each_isa([&](const IsaTable& table) {
    for (const Function& f : kFunctions) {
      const std::vector<float> y = apply(table, f.f, x);
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (f.f == MathFunction::log && x[i] < 0) continue;
        const double e = ulp_error(y[i], f.exact(x[i]));
        if (!(e <= worst)) worst = e, where = x[i];
      }
      if (std::getenv("TALLY_SHOW_ULP") != nullptr)
        std::printf("%s %s: %.2f ulp at %.9g\n", name(table.isa).data(), f.name, worst,
                    static_cast<double>(where));
      INFO(name(table.isa) << ' ' << f.name << " at " << where);
      CHECK(worst <= (table.isa == Isa::baseline ? f.max_ulp_baseline : f.max_ulp));
    }
  });
}

TEST_CASE("simd: infinities, NaN and zeros go where they should", "[F13]") {
  for_each_isa([&](const IsaTable& t) {
    using enum MathFunction;
    INFO(name(t.isa));
    CHECK(apply(t, exp, kInf) == kInf);
    CHECK(apply(t, exp, -kInf) == 0.0f);
    CHECK(apply(t, exp, 0.0f) == 1.0f);
    CHECK(apply(t, exp, 3e38f) == kInf);
    CHECK(apply(t, log, 0.0f) == -kInf);
    CHECK(apply(t, log, kInf) == kInf);
    CHECK(apply(t, log, 1.0f) == 0.0f);
    CHECK(std::isnan(apply(t, log, -1.0f)));
    for (const float big : {20.0f, 1e4f, 1e20f, 3e38f, kInf}) {
      CHECK(apply(t, tanh, big) == 1.0f);
      CHECK(apply(t, tanh, -big) == -1.0f);
      CHECK(apply(t, erf, big) == 1.0f);
      CHECK(apply(t, erf, -big) == -1.0f);
      CHECK(apply(t, normal_cdf, big) == 1.0f);
      CHECK(apply(t, sigmoid, big) == 1.0f);
      CHECK(apply(t, silu, big) == big);
      if (big < 1e3f) continue;
      CHECK(apply(t, normal_cdf, -big) == 0.0f);
      CHECK(apply(t, sigmoid, -big) == 0.0f);
      CHECK(apply(t, silu, -big) == 0.0f);
    }
    CHECK(apply(t, silu, -90.0f) == Approx(-7.37461e-38).epsilon(1e-5));
    for (const MathFunction f : {tanh, erf, silu}) CHECK(std::signbit(apply(t, f, -0.0f)));
    for (const Function& f : kFunctions)
      CHECK(std::isnan(apply(t, f.f, std::numeric_limits<float>::quiet_NaN())));
  });
}

TEST_CASE("simd: n copies of a value give n equal results, whatever the tail", "[F14]") {
  for_each_isa([&](const IsaTable& table) {
    for (const Function& f : kFunctions)
      for (const float value : {0.1f, 1.0f, 5.0f, 20.0f, -5.0f})
        for (size_t n = 1; n <= 67; ++n) {
          const std::vector<float> y = apply(table, f.f, std::vector<float>(n, value));
          const bool same = std::all_of(y.begin(), y.end(), [&](float v) {
            return std::bit_cast<uint32_t>(v) == std::bit_cast<uint32_t>(y[0]);
          });
          INFO(f.name << " of " << value << ", n " << n);
          REQUIRE(same);
        }
  });
}

TEST_CASE("simd: a map writes its n elements and no more") {
  for_each_isa([&](const IsaTable& table) {
    for (int64_t n = 0; n <= 35; ++n) {
      std::vector<float> x(40, 1.0f), y(40, -7.0f);
      table.map(MathFunction::exp, n, x.data(), y.data());
      for (size_t i = 0; i < y.size(); ++i) CHECK((y[i] == -7.0f) == (i >= static_cast<size_t>(n)));
    }
  });
}
