// Every optimizer: it minimises, its state carries a break, and it takes the parameters that suit it.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "optim/adafactor.h"
#include "optim/adamw.h"
#include "optim/adaptive.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "optim/shampoo.h"
#include "optim/soap.h"
#include "tests/registered.h"

using namespace tally;
using namespace tally::optim;
using Catch::Matchers::Contains;

namespace {

using Groups = std::vector<ParameterGroup>;
using Made = std::unique_ptr<Optimizer>;

struct Rule {
  const char* name;
  double lr;
  std::function<Made(Groups)> make;
  bool vectors = true;
};

template <class O>
std::function<Made(Groups)> with(typename O::Options options) {
  return [options](Groups g) { return std::make_unique<O>(std::move(g), options); };
}

std::vector<Rule> rules() {
  Adafactor::Options moment = Adafactor::t5_form();
  moment.beta1 = 0.9;
  return {{"sgd", 0.2, with<SGD>({})},
          {"momentum", 0.05, with<SGD>({0.9, 0.1})},
          {"nesterov", 0.05, with<SGD>({0.9, 0, true})},
          {"adam", 0.1, with<AdamW>({0.9, 0.99, 1e-8, false, false})},
          {"adamw", 0.1, with<AdamW>({0.9, 0.99})},
          {"amsgrad", 0.1, with<AdamW>({0.9, 0.99, 1e-8, true})},
          {"lion", 0.03, with<Lion>({})},
          {"adafactor", 0.2, with<Adafactor>(Adafactor::torch_form())},
          {"adafactor, T5's", 0.1, with<Adafactor>(moment)},
          {"adagrad", 0.5, with<Adagrad>({})},
          {"rmsprop", 0.03, with<RMSprop>({0.95, 0.5})},
          {"nadam", 0.1, with<NAdam>({})},
          {"muon", 0.1, with<Muon>({}), false},
          {"shampoo", 2, with<Shampoo>({1, 3, 64, true})},
          {"soap", 0.1, with<SOAP>({0.9, 0.95, 1e-8, 4, 64})}};
}

/// f(w) = sum_i curvature_i (w_i - 1)^2 / 2 over a matrix and a vector, curvatures from 0.3 to 3.
struct Quadratic {
  explicit Quadratic(bool vectors, Device device = kCPU) {
    parameters = {{"W", make({5, 6}, device)}};
    if (vectors) parameters.push_back({"b", make({7}, device)});
  }
  static Tensor make(const Shape& shape, Device device) {
    return full(shape, -1, DType::f64, device).requires_grad_();
  }
  static double curvature(size_t i) { return 0.3 * std::pow(10.0, static_cast<double>(i % 7) / 6); }
  Groups groups(double decay = 0) const { return {{"all", parameters, decay, 1}}; }
  /// The value; leaves the gradients.
  double value() {
    double sum = 0;
    for (auto& [name, w] : parameters) {
      const std::vector<double> v = to_host<double>(w);
      std::vector<double> g(v.size());
      for (size_t i = 0; i < v.size(); ++i) {
        g[i] = curvature(i) * (v[i] - 1);
        sum += 0.5 * g[i] * (v[i] - 1);
      }
      w.set_grad(from_host<double>(std::span<const double>(g), w.shape(), w.device()));
    }
    return sum;
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    for (const auto& [name, w] : parameters) {
      for (double v : to_host<double>(w)) all.push_back(v);
    }
    return all;
  }
  std::vector<std::pair<std::string, Tensor>> parameters;
};

double rate(const Rule& r, int64_t t, int64_t steps) {
  LearningRate s;
  s.schedule = Schedule::linear;
  s.peak = r.lr, s.final_fraction = 0.001, s.total = steps;
  return s.at(t);
}

/// Puts the state of one optimizer into another, as a checkpoint would.
void carry(Optimizer& from, Optimizer& to) {
  const auto a = from.state(), b = to.state();
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].first == b[i].first);
    const auto v = a[i].second.host<double>();
    std::copy(v.begin(), v.end(), b[i].second.host<double>().begin());
  }
  to.set_steps(from.steps());
}

struct Setup {
  Setup() { register_all(); }
};

}  // namespace

TEST_CASE_METHOD(Setup, "every optimizer: comes to the minimum of a quadratic", "[optim]") {
  for (const Rule& r : rules()) {
    Quadratic f(r.vectors);
    const Made optimizer = r.make(f.groups());
    const double start = f.value();
    constexpr int64_t kSteps = 300;
    for (int64_t t = 0; t < kSteps; ++t) {
      f.value();
      optimizer->step(rate(r, t, kSteps));
    }
    INFO(r.name << ": from " << start << " to " << f.value());
    CHECK(f.value() < 1e-3 * start);
  }
}

TEST_CASE_METHOD(Setup, "every optimizer: a break that carries its state changes no bit",
                 "[optim][F30]") {
  for (const Rule& r : rules()) {
    std::vector<std::vector<double>> ends;
    for (const bool broken : {false, true}) {
      Quadratic f(r.vectors);
      Made optimizer = r.make(f.groups(0.1));
      for (int64_t t = 0; t < 12; ++t) {
        if (broken && (t == 1 || t == 5)) {
          Made resumed = r.make(f.groups(0.1));
          carry(*optimizer, *resumed);
          optimizer = std::move(resumed);
        }
        f.value();
        optimizer->step(r.lr);
      }
      ends.push_back(f.numbers());
    }
    INFO(r.name);
    CHECK(ends[0] == ends[1]);
  }
}

TEST_CASE_METHOD(Setup, "every optimizer: the clip factor scales the gradient and nothing else",
                 "[optim][F33]") {
  for (const Rule& r : rules()) {
    std::vector<std::vector<double>> ends;
    for (const bool by_factor : {false, true}) {
      Quadratic f(r.vectors);
      const Made optimizer = r.make(f.groups(0.1));
      for (int64_t t = 0; t < 5; ++t) {
        f.value();
        const Tensor factor = full({1}, 0.25, DType::f64, kCPU);
        for (auto& [name, w] : f.parameters) {
          if (by_factor) continue;
          std::vector<double> g = to_host<double>(w.grad());
          for (double& v : g) v *= 0.25;
          w.set_grad(from_host<double>(std::span<const double>(g), w.shape(), kCPU));
        }
        optimizer->step(r.lr, by_factor ? factor : Tensor());
      }
      ends.push_back(f.numbers());
    }
    INFO(r.name);
    CHECK(ends[0] == ends[1]);
  }
}

TEST_CASE_METHOD(Setup, "every optimizer: without a gradient a parameter keeps its bits",
                 "[optim]") {
  for (const Rule& r : rules()) {
    Quadratic f(r.vectors);
    const Made optimizer = r.make(f.groups(0.1));
    const std::vector<double> before = f.numbers();
    optimizer->step(r.lr);
    optimizer->step(r.lr);
    INFO(r.name);
    CHECK(f.numbers() == before);
  }
}

TEST_CASE_METHOD(Setup, "optimizers: parameters that do not suit one are named", "[optim][error]") {
  Quadratic f(true);
  CHECK_THROWS_WITH(Muon(f.groups(), {}), Contains("muon: takes matrices; b is (7)"));
  CHECK_THROWS_WITH(Muon(Quadratic(false).groups(), {0.95, true, 0}),
                    Contains("muon: needs at least 1 iteration; got 0"));
  CHECK_THROWS_WITH(Shampoo(f.groups(), {1e-4, 1, 4}),
                    Contains("shampoo: both sides of W (5, 6) are longer than 4"));
  CHECK_THROWS_WITH(Shampoo(f.groups(), {0, 1, 4}),
                    Contains("shampoo: eps must be above 0; got 0"));
  CHECK_THROWS_WITH(Shampoo(f.groups(), {1e-4, 0, 4}),
                    Contains("every and longest must be at least 1; got 0 and 4"));
  CHECK_THROWS_WITH(SOAP(f.groups(), {0.9, 1}), Contains("soap: beta2 must be in 0..1"));
  CHECK_THROWS_WITH(SOAP(f.groups(), {0.9, 0.9, 1e-8, 1, 0}),
                    Contains("soap: every and longest must be at least 1; got 1 and 0"));
}
