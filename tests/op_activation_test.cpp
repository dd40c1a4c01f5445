// Activations, gates and the soft cap: values, extremes, errors.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/ops/activation.h"
#include "core/ops/gate.h"
#include "core/ops/soft_cap.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

Tensor f64(std::initializer_list<double> v, const Shape& s, Device d = kReference) {
  return from_host<double>(v, s, d);
}
Tensor i64(std::initializer_list<int64_t> v, const Shape& s) {
  return from_host<int64_t>(v, s, kReference);
}
std::vector<double> numbers(const Tensor& t) { return to_doubles(t); }
using K = ops::ActivationKind;
std::vector<double> to_doubles_of(const std::vector<float>& v) { return {v.begin(), v.end()}; }
/// f(x) and f'(x), computed in T.
template <class T>
std::array<std::vector<double>, 2> value_and_slope(K kind, const std::vector<T>& x,
                                                   Device device = kReference) {
  const Shape s{static_cast<int64_t>(x.size())};
  ops::Activation::Saved saved;
  const Tensor y = ops::Activation::forward(from_host<T>(x, s, device), {kind}, &saved);
  const Tensor dy = full(s, 1, dtype_of<T>, device);
  return {numbers(y), numbers(ops::Activation::backward(dy, std::move(saved))[0])};
}

struct Setup {
  Setup() {
    register_all();
    register_proof_kernels();
  }
};

}  // namespace

TEST_CASE_METHOD(Setup, "gelu: the exact and the tanh form are two functions", "[op][F12]") {
  const std::vector<double> x{-3, -1, -0.5, 0, 0.5, 1, 3};
  const auto check_both = [&](K kind, const std::vector<double>& y,
                              const std::vector<double>& slope) {
    const auto got = value_and_slope(kind, x);
    for (size_t i = 0; i < x.size(); ++i) {
      CHECK(got[0][i] == Approx(y[i]).margin(1e-11).epsilon(1e-8));
      CHECK(got[1][i] == Approx(slope[i]).margin(1e-11).epsilon(1e-8));
    }
  };
  check_both(K::gelu,
             {-0.00404969409, -0.158655254, -0.154268769, 0, 0.345731231, 0.841344746, 2.99595031},
             {-0.0119456472, -0.0833154706, 0.132504875, 0.5, 0.867495125, 1.08331547, 1.01194565});
  check_both(K::gelu_tanh,
             {-0.00363739208, -0.158808009, -0.154285990, 0, 0.345714010, 0.841191991, 2.99636261},
             {-0.0115841666, -0.0829640838, 0.132630096, 0.5, 0.867369904, 1.08296408, 1.01158417});
}

TEST_CASE_METHOD(Setup, "activation: values and slopes at extremes are limits, never NaN",
                 "[op][F13]") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> large{1e4f, 1e20f, 3e38f, inf}, small{-1e4f, -1e20f, -3e38f, -inf};
  for (Device device : {kReference, kCPU}) {
    for (K kind : {K::gelu, K::gelu_tanh, K::silu, K::swish, K::relu}) {
      INFO(ops::kActivationNames[static_cast<int>(kind)] << " on " << to_text(device));
      CHECK(value_and_slope(kind, large, device) ==
            std::array<std::vector<double>, 2>{to_doubles_of(large), {1, 1, 1, 1}});
      CHECK(value_and_slope(kind, small, device) ==
            std::array<std::vector<double>, 2>{{{0, 0, 0, 0}, {0, 0, 0, 0}}});
    }
    for (K kind : {K::sigmoid, K::tanh}) {
      const double low = kind == K::tanh ? -1 : 0;
      CHECK(value_and_slope(kind, large, device) ==
            std::array<std::vector<double>, 2>{{{1, 1, 1, 1}, {0, 0, 0, 0}}});
      CHECK(value_and_slope(kind, small, device) ==
            std::array<std::vector<double>, 2>{{{low, low, low, low}, {0, 0, 0, 0}}});
    }
    const auto square =
        value_and_slope(K::squared_relu, std::vector<float>{1e4f, 1e20f, -1e20f, -inf}, device);
    CHECK(square[0] == std::vector<double>{1e8, double(inf), 0, 0});
    CHECK(square[1] == std::vector<double>{2e4, double(2e20f), 0, 0});
    const auto tail = value_and_slope(K::silu, std::vector<float>{-90}, device);
    CHECK(tail[0][0] == Approx(-7.37461e-38).epsilon(1e-5));
    CHECK(tail[1][0] == Approx(-7.29267e-38).epsilon(1e-5));
    for (int k = 0; k < ops::kActivations; ++k) {
      const auto kind = static_cast<K>(k);
      for (const auto& part :
           value_and_slope(kind, std::vector<float>{1e4f, -1e4f, 1e20f, -1e20f}, device)) {
        for (double v : part) CHECK_FALSE(std::isnan(v));
      }
      CHECK(std::isnan(value_and_slope(kind, std::vector<float>{NAN}, device)[0][0]));
    }
  }
}

TEST_CASE_METHOD(Setup,
                 "activation: every element of a call gets the same bits, and tanh saturates",
                 "[op][F14]") {
  for (Device device : {kReference, kCPU}) {
    for (int k = 0; k < ops::kActivations; ++k) {
      for (float v : {0.1f, 1.0f, 5.0f, 20.0f, -5.0f}) {
        const auto first = value_and_slope(static_cast<K>(k), std::vector<float>{v}, device);
        for (size_t n = 2; n <= 67; ++n) {
          const auto all = value_and_slope(static_cast<K>(k), std::vector<float>(n, v), device);
          for (int part = 0; part < 2; ++part) {
            REQUIRE(all[part] == std::vector<double>(n, first[part][0]));
          }
        }
      }
    }
    CHECK(value_and_slope(K::gelu_tanh, std::vector<float>{20}, device)[0][0] == 20);
  }
}

TEST_CASE_METHOD(Setup, "activation and gate: refuse what they cannot mean", "[op][error]") {
  const Tensor x = f64({1, 2, 3}, {3}), two = f64({1, 2}, {2});
  CHECK_THROWS_WITH(activation(x, K::swish, NAN),
                    Contains("activation: the parameter of swish must be finite; got nan"));
  CHECK_THROWS_WITH(activation(i64({1}, {1}), K::relu),
                    Contains("needs floating-point tensors; got i64"));
  CHECK_THROWS_WITH(gate(x, {}, K::silu),
                    Contains("gate: the last axis of a fused [gate | up] must be even; got (3)"));
  CHECK_THROWS_WITH(gate(x, two, K::silu),
                    Contains("gate: gate and up must have one shape; got (3) and (2)"));
  CHECK_THROWS_WITH(gate({}, two, K::silu), Contains("gate: the gate is missing"));
}

TEST_CASE_METHOD(Setup, "gate: the fused form equals two tensors, gradient included", "[op]") {
  const Tensor fused = make_input(normal({4, 6}, 1), DType::f32, kReference);
  const Tensor a = fused.narrow(1, 0, 3), b = fused.narrow(1, 3, 3);
  ops::Gate::Saved one, two;
  CHECK(numbers(ops::Gate::forward(fused, {}, {K::silu}, &one)) ==
        numbers(ops::Gate::forward(a, b, {K::silu}, &two)));
  const Tensor dy = make_input(normal({4, 3}, 2), DType::f32, kReference);
  const Tensor d = ops::Gate::backward(dy, std::move(one))[0];
  const auto [da, db] = ops::Gate::backward(dy, std::move(two));
  CHECK(numbers(d.narrow(1, 0, 3)) == numbers(da));
  CHECK(numbers(d.narrow(1, 3, 3)) == numbers(db));
}

TEST_CASE_METHOD(Setup, "gate: a limit cuts both branches, an offset comes after it", "[op]") {
  const Tensor a = f64({3, -3, 0.5}, {3}), b = f64({5, -5, 1}, {3});
  ops::Gate::Saved saved;
  const Tensor y = ops::Gate::forward(a, b, {K::identity, 1, 2, 1}, &saved);
  CHECK(numbers(y) == std::vector<double>{2 * (2 + 1), -3 * (-2 + 1), 0.5 * (1 + 1)});
  const auto [da, db] = ops::Gate::backward(full({3}, 1, DType::f64, kReference), std::move(saved));
  CHECK(numbers(da) == std::vector<double>{0, -1, 2});
  CHECK(numbers(db) == std::vector<double>{0, 0, 0.5});
}

TEST_CASE_METHOD(Setup, "soft_cap: values and slopes, and odd caps refused by name",
                 "[op][error][F05][L74]") {
  const Tensor x = f64({0, 10, 50, 100, 1e4}, {5});
  ops::SoftCap::Saved saved;
  const auto y = numbers(ops::SoftCap::forward(x, {50}, &saved));
  const auto slope =
      numbers(ops::SoftCap::backward(full({5}, 1, DType::f64, kReference), std::move(saved))[0]);
  const double values[] = {0, 9.86876601, 38.0797078, 48.2013790, 50};
  const double slopes[] = {1, 0.961042983, 0.419974342, 0.0706508249, 0};
  for (size_t i = 0; i < 5; ++i) {
    CHECK(y[i] == Approx(values[i]).epsilon(1e-8));
    CHECK(slope[i] == Approx(slopes[i]).epsilon(1e-8).margin(1e-12));
  }
  for (double cap : {0.0, -1.0, double(NAN), double(INFINITY)}) {
    CHECK_THROWS_WITH(
        soft_cap(x, cap),
        Contains("soft_cap: the cap must be a finite number above 0; got " + to_text(cap)));
  }
  for (double cap : {1e-39, 1e39})
    CHECK_THROWS_WITH(soft_cap(x, cap), Contains("the cap must be a normal number of f32"));
  const double least = std::numeric_limits<float>::min();
  for (Device device : {kReference, kCPU}) {
    const Tensor pressed =
        soft_cap(from_host<float>(std::vector<float>{-3, 0, 5}, {3}, device), least);
    CHECK(to_host<float>(pressed) == std::vector<float>{-float(least), 0, float(least)});
  }
}
