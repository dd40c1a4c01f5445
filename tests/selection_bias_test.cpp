// Experts kept busy by a bias of the choice: the update by hand, in training, across a break.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "core/ops/moe_router.h"
#include "core/ops/selection_bias.h"
#include "core/watch.h"
#include "models/build.h"
#include "models/checkpoint.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kRate = 0.0625;  // sums of it are exact

RunConfig routed(int64_t accumulation = 1) {
  RunConfig c = tiny(accumulation);
  c.model.layers = 2;
  c.model.experts = 4, c.model.experts_per_token = 2, c.model.expert_d_ff = 16;
  c.model.router_selection_bias = true, c.model.router_bias_rate = kRate;
  c.resolve_and_check("routed");
  return c;
}

std::vector<std::vector<float>> biases(Trainer& t) {
  std::vector<std::vector<float>> out;
  for (auto& [name, b] : t.model().named_buffers()) out.push_back(to_host<float>(b));
  return out;
}

/// Counts what routers choose, by layer in the order of the calls.
struct Choices : Watcher {
  void after(const WatchedCall& call, const Entry& entry) override {
    const auto* r = call.as<ops::MoeRouter::Forward>();
    if (!r || entry.phase != Phase::forward) return;
    auto& of_layer = counts[entry.module];
    of_layer.resize(static_cast<size_t>(r->x.cols()));
    for (int64_t i = 0; i < r->experts.numel(); ++i)
      ++of_layer[static_cast<size_t>(r->experts.pointer<int64_t>()[i])];
  }
  std::map<std::string, std::vector<int64_t>> counts;
};

Tensor f64(std::initializer_list<double> v) {
  return from_host<double>(v, {static_cast<int64_t>(v.size())}, kReference);
}
Tensor chosen(std::initializer_list<int64_t> v) {
  return from_host<int64_t>(v, {static_cast<int64_t>(v.size()) / 2, 2}, kReference);
}

}  // namespace

TEST_CASE("selection bias: what is chosen too often loses, too seldom gains, the rest stays",
          "[op]") {
  register_all();
  const Tensor bias = f64({0.5, 0.5, 0.5, 0.5}), load = f64({0, 0, 0, 0});
  ops::SelectionBias::count(chosen({0, 1, 0, 2, 0, 1}), load, DType::f64);
  CHECK(to_host<double>(load) == std::vector<double>{3, 2, 1, 0});
  ops::SelectionBias::count(chosen({3, 1}), load, DType::f64);
  CHECK(to_host<double>(load) == std::vector<double>{3, 3, 1, 1});
  ops::SelectionBias::count(chosen({2, 2, 3, 3, 0, 2}), load, DType::f64);
  ops::SelectionBias::update(bias, load, 0.25);  // loads 4, 3, 4, 3 about 3.5
  CHECK(to_host<double>(bias) == std::vector<double>{0.25, 0.75, 0.25, 0.75});
  CHECK(to_host<double>(load) == std::vector<double>(4, 0));
  ops::SelectionBias::update(bias, load, 0.25);  // equal loads
  CHECK(to_host<double>(bias) == std::vector<double>{0.25, 0.75, 0.25, 0.75});
}

TEST_CASE("selection bias: says what does not fit", "[op][error]") {
  register_all();
  const Tensor four = f64({0, 0, 0, 0}), three = f64({0, 0, 0});
  CHECK_THROWS_WITH(ops::SelectionBias::count(chosen({0, 4}), four, DType::f64),
                    Contains("indices must be in 0..3") && Contains("holds 4"));
  CHECK_THROWS_WITH(ops::SelectionBias::count(chosen({0, 1}), four, DType::f32),
                    Contains("load must be (E) numbers in f32"));
  CHECK_THROWS_WITH(ops::SelectionBias::count(chosen({0, 1}), {}, DType::f64),
                    Contains("the load is missing"));
  CHECK_THROWS_WITH(ops::SelectionBias::update(four, three, 0.1),
                    Contains("bias and load must be (E)"));
  CHECK_THROWS_WITH(ops::SelectionBias::update(four, four, -1), Contains("rate must be a finite"));
  nn::MixtureOptions o;
  o.d_model = 4, o.d_ff = 4, o.experts = 4, o.bias_rate = 0.1;
  CHECK_THROWS_WITH(nn::MixtureOfExperts(o, DType::f32, kReference),
                    Contains("set selection_bias"));
}

TEST_CASE("selection bias: a step moves it against the load of all its micro-batches",
          "[training]") {
  const int64_t accumulation = GENERATE(1, 3);
  Made m(routed(accumulation));
  Choices watcher;
  m.trainer->step();
  REQUIRE(watcher.counts.size() == 2);
  const auto moved = biases(*m.trainer);
  size_t layer = 0;
  for (const auto& [module, counts] : watcher.counts) {
    INFO(module);
    int64_t all = 0;
    for (const int64_t n : counts) all += n;
    CHECK(all == accumulation * 2 * 8 * 2);
    for (size_t e = 0; e < 4; ++e) {
      const double want = 4 * counts[e] < all ? kRate : 4 * counts[e] > all ? -kRate : 0;
      CHECK(static_cast<double>(moved[layer][e]) == want);
    }
    ++layer;
  }
  // An evaluation counts nothing.
  m.trainer->evaluate(2);
  for (const auto& block : m.trainer->decoder().blocks)
    CHECK(to_host<float>(block->experts->load) == std::vector<float>(4, 0));
}

TEST_CASE("selection bias: the same bits eager, replayed and with layers computed again",
          "[training]") {
  const auto after = [](StepMode mode, const char* recompute) {
    RunConfig c = routed(2);
    c.train.recompute = recompute;
    Made m(c);
    m.trainer->set_mode(mode);
    const auto seen = losses(*m.trainer, 7);
    return std::tuple{seen, weights(*m.trainer), biases(*m.trainer)};
  };
  const auto want = after(StepMode::eager, "none");
  CHECK(std::get<2>(want) != std::vector(2, std::vector<float>(4, 0)));
  CHECK(after(StepMode::replayed, "none") == want);
  CHECK(after(StepMode::replayed, "all") == want);
}

TEST_CASE("selection bias: checkpoints hold it, and a run goes on from it bit for bit",
          "[training]") {
  const RunConfig c = routed();
  Made whole(c);
  const auto want = losses(*whole.trainer, 9);
  Scratch folder;
  RunDirectory run = new_run(folder);
  Made first(c);
  auto got = losses(*first.trainer, 5);
  first.trainer->save(run, {{"data", "x"}});
  Made second(c);
  second.trainer->resume(run, {{"data", "x"}});
  CHECK(biases(*second.trainer) == biases(*first.trainer));
  CHECK(biases(*first.trainer)[1] != std::vector<float>(4, 0));
  for (const double l : losses(*second.trainer, 9)) got.push_back(l);
  CHECK(got == want);
  CHECK(biases(*second.trainer) == biases(*whole.trainer));
  CHECK(weights(*second.trainer) == weights(*whole.trainer));
  // What reads a run for use finds it too.
  const auto stored = Checkpoint::own(c.model, run.latest() + "/model.safetensors");
  std::vector<float> bias(4);
  stored.read("blocks.1.mlp.router.selection_bias", std::span<float>(bias));
  CHECK(bias == biases(*first.trainer)[1]);
}

TEST_CASE("checkpoint: gains and biases that are one number are read back", "[training]") {
  RunConfig c = tiny();
  c.model.placement = Placement::none, c.model.residual_gain = ResidualGain::scalar;
  c.model.scalar_biases = true;
  c.resolve_and_check("scalars");
  Scratch folder;
  RunDirectory run = new_run(folder);
  Made m(c);
  losses(*m.trainer, 3);
  m.trainer->save(run, {{"data", "x"}});
  const auto stored = Checkpoint::own(c.model, run.latest() + "/model.safetensors");
  for (auto& [name, t] : m.trainer->model().named_parameters()) {
    std::vector<float> v(static_cast<size_t>(t.numel()));
    stored.read(name, std::span<float>(v));
    INFO(name);
    CHECK(v == to_host<float>(t));
  }
}
