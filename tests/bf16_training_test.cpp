// Training in bf16 with f32 masters (lecture claims L78, L81).
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

#include "core/ops/cast.h"
#include "core/ops/linear.h"
#include "core/parallel.h"
#include "models/probes.h"
#include "optim/sgd.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;

namespace {

RunConfig seeded(int64_t seed) {
  RunConfig c = tiny();
  c.train.seed = seed;
  return c;
}

std::vector<float> wide(const Tensor& t) {
  return to_host<float>(ops::Cast::forward(t.detach(), {DType::f32}, nullptr));
}

}  // namespace

TEST_CASE("bf16: steps too small for a weight in bf16 add up in its master",
          "[training][L78][F32]") {
  register_all();
  Tensor w = full({2}, 1.0, DType::bf16, kCPU);
  w.requires_grad_();
  optim::SGD optimizer({{"all", {{"w", w}}, 0, 1}}, {});
  for (int i = 0; i < 100; ++i) {  // bf16 numbers below 1 are 2^-8 = 3.9e-3 apart
    w.set_grad(full({2}, 1.0, DType::bf16, kCPU));
    optimizer.step(6e-4);
    if (i < 3) CHECK(wide(w)[0] == 1);
  }
  CHECK(wide(w)[0] == 0.94140625F);
  const auto state = optimizer.state();
  REQUIRE(state.size() == 1);
  CHECK(state[0].first == "master.w");
  CHECK(state[0].second.dtype() == DType::f32);
  CHECK(to_host<float>(state[0].second)[0] == Approx(0.94).epsilon(1e-5));
}

TEST_CASE("bf16: the bias' gradient of a product joins the one that is there", "[training][F16]") {
  register_all();
  const auto ones = [](const Shape& shape) { return full(shape, 1.0, DType::bf16, kCPU); };
  const Tensor dy = ones({9, 3}), x = ones({9, 5}), w = ones({3, 5});
  const Tensor db = full({3}, 2.0, DType::bf16, kCPU);
  ops::Linear::Backward c{dy, x, w, {}, {}, db};
  for (const bool adds : {true, false}) {
    c.db.accumulate = adds;
    run(kCPU, c);
    CHECK(wide(db) == std::vector<float>(3, adds ? 11.0F : 9.0F));
  }
}

TEST_CASE("bf16: 16 bytes a parameter, weights 2, gradients 2, master 4, moments 8",
          "[training][memory][L81]") {
  Made bf(tiny(), 400, DType::bf16);
  double weights = 0, states = 0, n = 0;
  for (auto& [name, t] : bf.trainer->model().named_parameters())
    n += double(t.numel()), weights += double(t.nbytes());
  for (auto& [name, t] : bf.trainer->optimizer().state()) states += double(t.nbytes());
  CHECK(weights == 2 * n);
  CHECK(states == 12 * n);
  bf.trainer->step();
  CHECK(bf.trainer->training_step().why_not_replayed().empty());
}

TEST_CASE("bf16: probes measure the masters under the parameters' names", "[training][probes]") {
  Made bf(tiny(), 400, DType::bf16), f32(tiny());
  const auto measured = [](Trainer& t) {
    Probes probes({"update_ratio", "grad_norm"}, t.optimizer().groups());
    t.step();
    return probes.values();
  };
  for (int i = 0; i < 3; ++i) {
    const ProbeValues narrow = measured(*bf.trainer), wide = measured(*f32.trainer);
    for (const char* probe : {"update_ratio", "grad_norm"}) {
      REQUIRE(narrow.at(probe).size() == wide.at(probe).size());
      REQUIRE(narrow.at(probe).size() >= 8);
      for (size_t k = 0; k < wide.at(probe).size(); ++k) {
        const auto& [name, value] = wide.at(probe)[k];
        CHECK(narrow.at(probe)[k].first == name);
        CHECK(narrow.at(probe)[k].second == Approx(value).epsilon(0.1));
      }
    }
  }
}

TEST_CASE("bf16: training follows f32, is replayed, and goes on from a checkpoint bit for bit",
          "[training][L78]") {
  const RunConfig c = seeded(1);
  Made f32(c), bf16(c, 400, DType::bf16), eager(c, 400, DType::bf16);
  eager.trainer->set_mode(StepMode::eager);
  const auto want = losses(*f32.trainer, 100), got = losses(*bf16.trainer, 100);
  CHECK(losses(*eager.trainer, 100) == got);
  const double last_f32 = f32.trainer->evaluate().loss, last = bf16.trainer->evaluate().loss;
  CHECK(last < 0.8 * want.front());  // it learns
  CHECK(std::abs(last - last_f32) < 0.02);

  Scratch folder;
  RunDirectory run = new_run(folder);
  Made first(c, 400, DType::bf16), second(c, 400, DType::bf16);
  auto parts = losses(*first.trainer, 37);
  first.trainer->save(run, {});
  second.trainer->resume(run, {});
  for (const double loss : losses(*second.trainer, 100)) parts.push_back(loss);
  CHECK(parts == got);
}

TEST_CASE("bf16: rounded at random, steps too small for a weight are right in the mean",
          "[training][L78][F32]") {
  register_all();
  constexpr int64_t kWeights = 4096;
  const auto after = [](optim::Bf16Update update, uint64_t seed) {
    Tensor w = full({kWeights}, 1.0, DType::bf16, kCPU);
    w.requires_grad_();
    optim::SGD optimizer({{"all", {{"w", w}}, 0, 1, update, seed}}, {});
    for (int i = 0; i < 100; ++i) {
      w.set_grad(full({kWeights}, 1.0, DType::bf16, kCPU));
      optimizer.step(6e-4);
    }
    CHECK(optimizer.state().size() == (update == optim::Bf16Update::masters ? 1 : 0));
    return wide(w);
  };
  const auto mean = [](const std::vector<float>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  const auto rounded = after(optim::Bf16Update::stochastic, 1);
  // A weight makes about 15 steps of 2^-8 with a deviation of about 2^-8 sqrt(100 p (1 - p)), 0.014.
  CHECK(mean(rounded) == Approx(0.94).margin(5 * 0.014 / std::sqrt(double(kWeights))));
  CHECK(after(optim::Bf16Update::stochastic, 1) == rounded);
  CHECK(after(optim::Bf16Update::stochastic, 2) != rounded);
  for (const float v : after(optim::Bf16Update::masters, 1)) CHECK(v == 0.94140625F);
}

TEST_CASE("bf16: rounded at random 12 bytes a parameter, and the same bits for threads and breaks",
          "[training][memory][L81]") {
  RunConfig c = tiny();
  c.train.bf16_update = Bf16Update::stochastic;
  const OptimizerKind kind = GENERATE(OptimizerKind::adamw, OptimizerKind::muon,
                                      OptimizerKind::soap, OptimizerKind::adafactor);
  c.train.optimizer = kind;
  const int former = num_threads();
  set_num_threads(1);
  Made whole(c, 50, DType::bf16);
  const auto want = losses(*whole.trainer, 60);
  double n = 0, states = 0;
  for (auto& [name, t] : whole.trainer->model().named_parameters()) n += double(t.numel());
  for (auto& [name, t] : whole.trainer->optimizer().state()) {
    states += double(t.nbytes());
    CHECK(name.find("master") == std::string::npos);
  }
  if (kind == OptimizerKind::adamw) CHECK(states == 8 * n);
  CHECK(want.back() < want.front());
  const Scratch folder;
  RunDirectory run = new_run(folder);
  std::vector<double> got;
  for (const int64_t until : {17, 18, 60}) {
    set_num_threads(until == 17 ? 3 : 2);
    Made part(c, 50, DType::bf16);
    if (!got.empty()) part.trainer->resume(run, {});
    if (until == 60) part.trainer->set_mode(StepMode::eager);  // replayed before: the step is told
    for (const double loss : losses(*part.trainer, until)) got.push_back(loss);
    part.trainer->save(run, {});
  }
  set_num_threads(former);
  CHECK(got == want);
}

TEST_CASE("bf16: rounding at random is refused for other weights", "[training][error]") {
  RunConfig c = tiny();
  c.train.bf16_update = Bf16Update::stochastic;
  CHECK_THROWS_WITH(
      Made(c), Catch::Contains("bf16_update = stochastic") && Catch::Contains("give --dtype bf16"));
}
