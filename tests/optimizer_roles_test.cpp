// Which parameters an optimizer takes, what it keeps of them, and Muon's orthogonal directions.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "core/ledger.h"
#include "core/ops/eigen_basis.h"
#include "models/architecture.h"
#include "models/build.h"
#include "models/zoo.h"
#include "optim/make.h"
#include "optim/muon.h"
#include "tests/registered.h"

using namespace tally;
using namespace tally::optim;
using Catch::Matchers::Contains;

namespace {

using Groups = std::vector<ParameterGroup>;

struct Setup {
  Setup() { register_all(); }
};

}  // namespace

TEST_CASE_METHOD(Setup, "muon: all singular values come near 1, whatever they were",
                 "[optim][L86]") {
  for (const Shape& shape : {Shape{6, 4}, Shape{4, 6}, Shape{5, 5}, Shape{1, 3}}) {
    std::vector<double> v;
    for (int64_t i = 0; i < shape.numel(); ++i)
      v.push_back(std::sin(static_cast<double>(i * i * 7 + i + 1)) * (i < shape[1] ? 10 : 1));
    const Tensor u = from_host<double>(std::span<const double>(v), shape, kCPU);
    const Tensor x = Muon::orthogonal(u, 10);  // two rounds: the smallest have far to go
    const int64_t n = std::min(shape[0], shape[1]);
    std::vector<double> products;  // x x^T, or x^T x where that is smaller
    const std::vector<double> e = to_host<double>(x);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < std::max(shape[0], shape[1]); ++k) {
          const auto at = [&](int64_t r) {
            return e[static_cast<size_t>(shape[0] <= shape[1] ? r * shape[1] + k
                                                              : k * shape[1] + r)];
          };
          sum += at(i) * at(j);
        }
        products.push_back(sum);
      }
    }
    const Tensor a = from_host<double>(std::span<const double>(products), {n, n}, kCPU);
    for (double squared : to_host<double>(ops::EigenBasis::of(a).values)) {
      CHECK(std::sqrt(squared) > 0.6);
      CHECK(std::sqrt(squared) < 1.3);
    }
  }
}

TEST_CASE_METHOD(Setup, "muon: the products of Newton and Schulz are in the ledger",
                 "[optim][L86]") {
  for (const Shape& shape : {Shape{24, 8}, Shape{8, 24}}) {
    Tensor w = zeros(shape, DType::f32, kMeta).requires_grad_();
    w.set_grad(zeros(shape, DType::f32, kMeta));
    Muon muon({{"all", {{"w", w}}, 0.1, 1}}, {});
    Ledger ledger;
    muon.step(0.1);
    double products = 0;
    for (const Entry& e : ledger.entries()) {
      if (e.kind == Kind::contraction) products += e.cost.flops;
    }
    const double n = 8, m = 24;  // A = X X^T, A A, and the polynomial times X, five times
    CHECK(products == 5 * (2 * n * n * m + 2 * n * n * n + 2 * n * n * m));
  }
}

TEST_CASE_METHOD(
    Setup, "roles: models with an encoder have hidden matrices too, their tables do not decay",
    "[optim][L67][L86]") {
  for (const char* preset : {"bert-smoke", "t5-smoke", "transformer-smoke"}) {
    INFO(preset);
    RunConfig c = find_preset(preset).config;
    c.resolve_and_check(preset);
    const auto model = build_language_model(c.model, DType::f32, kMeta);
    const Groups groups = role_groups(*model, 0.1);
    CHECK(groups[0].name == "hidden matrices");
    CHECK(groups[0].parameters.size() >= 12);
    for (const auto& [name, t] : groups[0].parameters) {
      CHECK_THAT(name, Contains(".layers."));
      CHECK(t.ndim() == 2);
    }
    for (size_t g = 1; g < groups.size(); ++g) {
      for (const auto& [name, t] : groups[g].parameters) {
        INFO(name);
        CHECK((t.ndim() < 2 || name.find(".layers.") == std::string::npos));
        for (const char* table : {"embedding.weight", "position.weight", "types.weight"})
          if (name.ends_with(table)) CHECK(groups[g].weight_decay == 0);
      }
    }
    CHECK_THAT(describe(groups), Contains("encoder.layers.0-1.mlp.up.weight"));
  }
}

TEST_CASE_METHOD(Setup, "muon: a stack of matrices is each of them", "[optim][L86]") {
  std::vector<double> g;
  for (int i = 0; i < 24; ++i) g.push_back(std::cos(i * 1.7));
  const auto numbers_of = [&](std::span<const double> part, const Shape& shape) {
    Tensor w = full(shape, 0.5, DType::f64, kCPU).requires_grad_();
    w.set_grad(from_host<double>(part, shape, kCPU));
    Muon muon({{"all", {{"w", w}}, 0.1, 1}}, {});
    muon.step(0.1);
    return to_host<double>(w);
  };
  const std::vector<double> all = numbers_of(g, {2, 3, 4});
  std::vector<double> parts = numbers_of(std::span<const double>(g).first(12), {3, 4});
  const std::vector<double> second = numbers_of(std::span<const double>(g).last(12), {3, 4});
  parts.insert(parts.end(), second.begin(), second.end());
  CHECK(all == parts);
}

TEST_CASE_METHOD(Setup, "groups by role: hidden matrices apart from embedding, head and vectors",
                 "[optim][L67][L86]") {
  for (const char* preset : {"gpt-smoke", "llama-smoke"}) {
    RunConfig config = find_preset(preset).config;
    config.resolve_and_check(preset);
    const auto model = build_model(config.model, DType::f32, kCPU);
    const Groups groups = role_groups(*model, 0.1);
    REQUIRE(groups.size() == 3);
    std::set<std::string> seen;
    for (const ParameterGroup& g : groups) {
      for (const auto& [name, t] : g.parameters) CHECK(seen.insert(name).second);
    }
    CHECK(seen.size() == model->named_parameters().size());
    CHECK(groups[0].parameters.size() == 4u * static_cast<size_t>(config.model.layers));
    for (const auto& [name, t] : groups[0].parameters) {
      CHECK(t.ndim() == 2);
      CHECK_THAT(name, Contains("blocks"));
    }
    CHECK_THAT(describe(groups), Contains("hidden matrices (weight decay 0.1"));
  }
}

TEST_CASE_METHOD(Setup, "state: bytes by optimizer, from the tensors themselves", "[optim][L81]") {
  RunConfig config = find_preset("llama-smoke").config;
  config.resolve_and_check("llama-smoke");
  const auto model = build_model(config.model, DType::f32, kMeta);
  double n = 0, hidden = 0, factored = 0;
  for (const auto& [name, t] : model->named_parameters()) {
    n += static_cast<double>(t.numel());
    factored += static_cast<double>(t.ndim() < 2 ? t.numel() : t.size(0) + t.size(1));
  }
  const Groups groups = role_groups(*model, 0);
  for (const auto& [name, t] : groups[0].parameters) hidden += static_cast<double>(t.numel());
  const auto bytes = [&](OptimizerKind kind) {
    OptimizerChoice c;
    c.kind = kind;
    return state_bytes(*make_optimizer(*model, c));
  };
  CHECK(bytes(OptimizerKind::adamw) == 8 * n);
  CHECK(bytes(OptimizerKind::lion) == 4 * n);
  CHECK(bytes(OptimizerKind::sgd) == 4 * n);
  CHECK(bytes(OptimizerKind::adafactor) == 4 * factored);
  CHECK(bytes(OptimizerKind::muon) == 8 * n - 4 * hidden);
  CHECK(bytes(OptimizerKind::soap) > bytes(OptimizerKind::adamw));
}
