#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "models/build.h"
#include "models/zoo.h"
#include "optim/adamw.h"
#include "optim/schedule.h"
#include "tests/registered.h"

using namespace tally;
using namespace tally::optim;

namespace {

Tensor vector_of(std::initializer_list<float> values) {
  Tensor t = from_host<float>(values, {static_cast<int64_t>(values.size())}, kCPU);
  return t.requires_grad_();
}

std::vector<ParameterGroup> one_group(
    std::initializer_list<std::pair<std::string, Tensor>> parameters, double decay) {
  return {{"all", parameters, decay, 1}};
}

LearningRate schedule(Schedule kind, int64_t warmup, int64_t total) {
  LearningRate s;
  s.schedule = kind;
  s.peak = 1, s.final_fraction = 0.1;
  s.warmup = warmup, s.total = total;
  return s;
}

void set_gradient(Tensor& t, float value) {
  t.set_grad(full(t.shape(), value, t.dtype(), t.device()));
}

}  // namespace

TEST_CASE("schedule: warm-up over t / warmup, then a cosine to the floor", "[optim][F34]") {
  const LearningRate s = schedule(Schedule::cosine, 4, 10);
  const double want[] = {0,    0.25,  0.5,      0.75, 1,   0.939711, 0.775,
                         0.55, 0.325, 0.160289, 0.1,  0.1, 0.1};
  for (int t = 0; t <= 12; ++t) CHECK(s.at(t) == Approx(want[t]).margin(1e-6));
}

TEST_CASE("schedule: each goes where its formula says", "[optim][L77]") {
  LearningRate s = schedule(Schedule::linear, 2, 12);
  CHECK(s.at(2) == 1);
  CHECK(s.at(7) == Approx(0.55));
  CHECK(s.at(12) == Approx(0.1));
  CHECK(s.at(50) == Approx(0.1));
  s.schedule = Schedule::constant;
  CHECK(s.at(50) == 1);
  s.schedule = Schedule::inverse_sqrt;
  s.warmup = 4;
  CHECK(s.at(4) == 1);
  CHECK(s.at(16) == 0.5);
  s = schedule(Schedule::multi_step, 0, 10);
  s.milestones = {8, 9};
  for (int t = 0; t < 12; ++t) CHECK(s.at(t) == Approx(t < 8 ? 1 : t < 9 ? 0.1 : 0.01));
  s = schedule(Schedule::wsd, 2, 20);
  s.decay_steps = 4;
  CHECK(s.at(15) == 1);
  CHECK(s.at(16) == 1);
  CHECK(s.at(18) == Approx(0.55));
  s.decay = Decay::one_minus_sqrt;
  CHECK(s.at(17) == Approx(0.55));
  s.decay = Decay::cosine;
  CHECK(s.at(18) == Approx(0.55));
  CHECK(s.at(20) == Approx(0.1));
  s.warmup_from = 0.5;
  CHECK(s.at(0) == 0.5);
  CHECK(s.at(1) == 0.75);
  s = schedule(Schedule::noam, 100, 0);
  s.d_model = 512;
  CHECK(s.at(99) == Approx(1 / std::sqrt(512.0 * 100)));
}

TEST_CASE("schedule: a longer WSD run has the rates of the shorter one up to its decay",
          "[optim][L77]") {
  LearningRate trunk = schedule(Schedule::wsd, 3, 100), branch = schedule(Schedule::wsd, 3, 60);
  trunk.decay_steps = branch.decay_steps = 10;
  for (int t = 0; t <= 50; ++t) CHECK(trunk.at(t) == branch.at(t));
  CHECK(branch.at(55) < trunk.at(55));
}

TEST_CASE("batch ramp: multiples of the first, and where each step begins", "[optim][L82]") {
  const BatchRamp ramp{4, 32, 40};
  int64_t sum = 0;
  for (int64_t t = 0; t < 60; ++t) {
    CHECK(ramp.before(t) == sum);
    CHECK(ramp.at(t) % 4 == 0);
    CHECK(ramp.at(t) >= (t > 0 ? ramp.at(t - 1) : 4));
    sum += ramp.at(t);
  }
  CHECK(ramp.at(0) == 4);
  CHECK(ramp.at(20) == 16);
  CHECK(ramp.at(40) == 32);
  const BatchRamp none{8, 8, 0};
  CHECK(none.at(0) == 8);
  CHECK(none.before(5) == 40);
}

TEST_CASE("schedule: empty phases divide by nothing", "[optim][F34]") {
  for (const Schedule kind :
       {Schedule::constant, Schedule::linear, Schedule::cosine, Schedule::inverse_sqrt,
        Schedule::noam, Schedule::multi_step, Schedule::wsd}) {
    for (const auto& [warmup, total] : {std::pair{0, 10}, {10, 10}, {0, 0}, {20, 10}}) {
      const LearningRate s = schedule(kind, warmup, total);
      for (int t = 0; t < 30; ++t) {
        CHECK(std::isfinite(s.at(t)));
        CHECK(s.at(t) >= 0);
        CHECK(s.at(t) <= 1);
      }
    }
  }
  for (const Schedule kind : {Schedule::linear, Schedule::cosine}) {
    CHECK(schedule(kind, 0, 10).at(0) == 1);
    CHECK(schedule(kind, 10, 10).at(10) == 1);
    CHECK(schedule(kind, 10, 10).at(11) == 0.1);
    for (int t = 1; t < 5; ++t) CHECK(schedule(kind, 0, 0).at(t) == 0.1);
  }
}

TEST_CASE("adamw: the worked example, with and without a break after step 2", "[optim][F30]") {
  const float gradients[] = {1, -2, 0.5f, 0};
  const double want[] = {0.890000001, 0.9174373958, 0.9219853364, 0.9241525534};
  for (bool broken : {false, true}) {
    Tensor w = from_host<double>({1.0}, {1}, kCPU).requires_grad_();
    auto optimizer =
        std::make_unique<AdamW>(one_group({{"w", w}}, 0.1), AdamW::Options{0.9, 0.95, 1e-8});
    for (int t = 0; t < 4; ++t) {
      if (broken && t == 2) {  // state goes to a new optimizer as a checkpoint would carry it
        auto resumed =
            std::make_unique<AdamW>(one_group({{"w", w}}, 0.1), AdamW::Options{0.9, 0.95, 1e-8});
        const auto from = optimizer->state(), to = resumed->state();
        for (size_t i = 0; i < from.size(); ++i)
          to[i].second.host<double>()[0] = from[i].second.host<double>()[0];
        resumed->set_steps(optimizer->steps());
        optimizer = std::move(resumed);
      }
      set_gradient(w, gradients[t]);
      optimizer->step(0.1);
      CHECK(w.host<double>()[0] == Approx(want[t]).epsilon(1e-9));
    }
    CHECK(optimizer->steps() == 4);
    CHECK(optimizer->state()[0].second.host<double>()[0] == Approx(-0.0441).epsilon(1e-9));
    CHECK(optimizer->state()[1].second.host<double>()[0] == Approx(0.23524375).epsilon(1e-9));
  }
}

TEST_CASE("adamw: with zero gradients matrices shrink by 1 - lr decay and all else keeps its bits",
          "[optim][F29]") {
  const std::string preset = GENERATE("gpt-smoke", "llama-smoke");
  RunConfig config = find_preset(preset).config;
  config.resolve_and_check(preset);
  const auto model = build_model(config.model, DType::f32, kCPU);
  initialise(*model, config.model, 1);
  model->requires_grad();
  const auto groups = decay_groups(*model, 0.1);
  std::set<std::string> decayed;
  size_t listed = 0;
  for (const auto& g : groups) {
    listed += g.parameters.size();
    for (const auto& [name, t] : g.parameters) {
      if (g.weight_decay > 0) decayed.insert(name);
    }
  }
  CHECK(listed == model->named_parameters().size());
  const std::string printed = optim::describe(groups);
  for (const auto& [name, t] : model->named_parameters()) {
    const size_t layer =
        name.find("blocks.");  // those of all blocks are one: blocks.0-1.mlp.up.weight
    const std::string shown =
        layer == std::string::npos ? name : "blocks.0-1" + name.substr(name.find('.', layer + 7));
    CHECK_THAT(printed, Catch::Contains(shown));
  }
  CHECK(decayed.size() == 4u * static_cast<size_t>(config.model.layers));
  std::vector<std::vector<float>> before;
  for (auto& [name, t] : model->named_parameters()) {
    before.push_back(to_host<float>(t));
    set_gradient(t, 0);
  }
  AdamW optimizer(groups, {});
  optimizer.step(0.1);
  size_t i = 0;
  for (auto& [name, t] : model->named_parameters()) {
    const float factor = decayed.contains(name) ? 1.0f - 0.1f * 0.1f : 1.0f;
    const auto after = t.host<float>();
    for (size_t k = 0; k < after.size(); ++k) REQUIRE(after[k] == before[i][k] * factor);
    ++i;
  }
}

// Lecture claim L80: two weights whose gradients have no direction, the second's a hundred times larger.
TEST_CASE("adam: with L2 the weight with large gradients decays less, decoupled both alike",
          "[optim][L80]") {
  const auto after = [](bool decoupled) {
    Tensor w = from_host<double>({1.0, 1.0}, {2}, kCPU).requires_grad_();
    AdamW optimizer(one_group({{"w", w}}, 0.1), {0.9, 0.95, 1e-8, false, decoupled});
    for (int t = 0; t < 2000; ++t) {
      const double sign = t % 2 == 0 ? 1 : -1;
      w.set_grad(from_host<double>({0.01 * sign, sign}, {2}, kCPU));
      optimizer.step(1e-3);
    }
    return to_host<double>(w);
  };
  const double shrunk = std::pow(1 - 1e-4, 2000);  // 0.819
  const auto decoupled = after(true), l2 = after(false);
  for (double w : decoupled) CHECK(w == Approx(shrunk).epsilon(0.01));
  CHECK(l2[1] == Approx(shrunk).epsilon(0.01));  // lr decay w / |g|, and |g| = 1
  CHECK(std::abs(l2[0]) < 0.02);
}

TEST_CASE("clip: the global norm survives numbers whose squares overflow", "[optim][F33]") {
  for (const auto& [count, value, want] :
       {std::tuple<int64_t, float, double>{100, 1e20f, 0.1}, {128, 1e19f, 0.0883883476}}) {
    Tensor t = zeros({count}, DType::f32, kCPU);
    t.requires_grad_();
    set_gradient(t, value);
    const auto groups = one_group({{"t", t}}, 0);
    const ClippedNorm clip = clip_factor(groups, 1);
    CHECK(clip.factor.item() * static_cast<double>(value) == Approx(want).epsilon(1e-5));
  }
  Tensor t = vector_of({0, 0});
  t.set_grad(from_host<float>({3.0f, 4.0f}, {2}, kCPU));
  const ClippedNorm clip = clip_factor(one_group({{"t", t}}, 0), 1);
  CHECK(clip.norm.item() == Approx(5));
  CHECK(clip.factor.item() == Approx(0.2).epsilon(1e-5));
}

TEST_CASE("clip: a bad gradient is named", "[optim][F33]") {
  Tensor a = vector_of({1, 2}), b = vector_of({3});
  set_gradient(a, 1);
  b.set_grad(from_host<float>({NAN}, {1}, kCPU));
  const auto groups = one_group({{"a", a}, {"b", b}}, 0);
  CHECK(!std::isfinite(clip_factor(groups, 1).norm.item()));
  CHECK(first_bad_gradient(groups) == "b");
  set_gradient(b, 1);
  CHECK(first_bad_gradient(groups).empty());
}
