// Steps of training: predicted memory, planned memory and replay give the bits of the plain step.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "core/host_backend.h"
#include "core/sanitizers.h"
#include "models/build.h"
#include "models/recompute.h"
#include "models/report.h"
#include "models/training_step.h"
#include "models/zoo.h"
#include "optim/adamw.h"
#include "tests/registered.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

ModelConfig small(const char* preset, double dropout) {
  ModelConfig c = find_preset(preset).config.model;
  c.layers = 3;
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = dropout;
  c.resolve();
  return c;
}

constexpr StepOptions kShape{2, 24, 1, 0.5};

/// A model in training on made-up tokens.
struct Training {
  Training(const ModelConfig& config, StepOptions options, StepMode mode, Device device = kCPU,
           const std::string& recompute = "none")
      : vocab(config.vocab), model(build_model(config, DType::f32, device)), generator(7) {
    initialise(*model, config, 1);
    model->recompute = recompute_layers(recompute, config.layers);
    const auto adamw = [](nn::Module& m) {
      return std::make_unique<optim::AdamW>(optim::decay_groups(m, 0.1), optim::AdamW::Options{});
    };
    step = std::make_unique<TrainingStep>(*model, adamw, options, generator);
    step->set_mode(mode);
  }
  TrainingStep::Result run() {
    const int64_t t = step->optimizer().steps();
    const auto result = step->gradients([&](int64_t micro, const BatchSpans& to) {
      const auto stream = static_cast<uint64_t>(t * step->options().accumulation + micro);
      for (size_t i = 0; i < to.ids.size(); ++i) {
        to.ids[i] = Philox::word(1, stream, i) % vocab;
        to.targets[i] = i % 7 == 3 ? -100 : Philox::word(2, stream, i) % vocab;
      }
    });
    step->update(1e-3 * static_cast<double>(t + 1));
    return result;
  }
  std::vector<std::vector<float>> weights() {
    std::vector<std::vector<float>> out;
    for (auto& [name, w] : model->named_parameters()) out.push_back(to_host<float>(w));
    return out;
  }
  int64_t vocab;
  std::unique_ptr<nn::Decoder> model;
  Generator generator;
  std::unique_ptr<TrainingStep> step;
};

HostBackend& host() { return dynamic_cast<HostBackend&>(backend(kCPU)); }

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace

TEST_CASE("training step: the peak predicted on meta is the measured one, to the byte",
          "[memory][training]") {
  for (const char* preset : {"gpt-smoke", "llama-smoke"}) {
    for (const char* recompute : {"none", "all", "0-1"}) {
      for (const int64_t accumulation : {1, 3}) {
        for (const Device device : {kReference, kCPU}) {
          INFO(preset << ", recompute " << recompute << ", accumulation " << accumulation << " on "
                      << to_text(device));
          const ModelConfig c = small(preset, 0.1);
          ReportOptions o;
          o.batch = kShape.batch, o.seq = kShape.seq, o.train = true;
          o.recompute = recompute, o.accumulation = accumulation;
          const Report predicted = make_report(c, o);
          StepOptions shape = kShape;
          shape.accumulation = accumulation;
          const size_t before = backend(device).memory().live;
          backend(device).reset_peak();
          Training t(c, shape, StepMode::eager, device, recompute);
          for (int step = 0; step < 2; ++step) t.run();
          CHECK(static_cast<double>(backend(device).memory().peak - before) == predicted.peak);
        }
      }
    }
  }
}

TEST_CASE("training step: planned and replayed steps have the bits of eager ones",
          "[memory][training][program]") {
  ModelConfig packed = small("llama-smoke", 0.1);  // its documents end elsewhere in each batch
  packed.vocab = 11, packed.document_end = 5, packed.attention_prefix = 4;
  const std::pair<const char*, ModelConfig> models[] = {{"gpt-smoke", small("gpt-smoke", 0.1)},
                                                        {"llama-smoke", small("llama-smoke", 0.1)},
                                                        {"documents and a prefix", packed}};
  for (const auto& [preset, c] : models) {
    for (const int64_t accumulation : {1, 3}) {
      for (const char* recompute : {"none", "0,2"}) {
        StepOptions shape = kShape;
        shape.accumulation = accumulation;
        Training eager(c, shape, StepMode::eager, kCPU, recompute),
            planned(c, shape, StepMode::planned, kCPU, recompute),
            replayed(c, shape, StepMode::replayed, kCPU, recompute);
        for (int step = 0; step < 5; ++step) {
          INFO(preset << ", recompute " << recompute << ", accumulation " << accumulation
                      << ", step " << step);
          const auto want = eager.run(), a = planned.run(), b = replayed.run();
          CHECK(a.loss == want.loss);
          CHECK(a.norm == want.norm);
          CHECK(b.loss == want.loss);
          CHECK(b.norm == want.norm);
          CHECK(planned.step->arena()->stats().unplanned == 0);
          CHECK(replayed.step->arena()->stats().unplanned == 0);
        }
        CHECK(replayed.step->why_not_replayed() == "");
        CHECK(replayed.step->recorded_calls() > 50);
        CHECK(planned.weights() == eager.weights());
        CHECK(replayed.weights() == eager.weights());
        CHECK(replayed.generator.position() == eager.generator.position());
        CHECK(replayed.step->optimizer().steps() == 5);
      }
    }
  }
}

TEST_CASE("training step: the steady state asks neither the system nor the pool for memory",
          "[memory][training]") {
  const ModelConfig c = small("llama-smoke", 0.1);
  StepOptions shape = kShape;
  shape.accumulation = 2;
  for (const StepMode mode : {StepMode::planned, StepMode::replayed}) {
    Training t(c, shape, mode);
    t.run();
    t.run();
    const MemoryPlan& plan = t.step->arena()->plan();
    CHECK(plan.sections.size() == 3);
    CHECK(plan.arena_bytes < plan.live_peak + plan.live_peak / 4);
    const size_t asked = host().system().allocations, cached = host().cached_bytes();
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int step = 0; step < 4; ++step) {
      backend(kCPU).reset_peak();
      const int64_t faults = page_faults();
      t.run();
      least = std::min(least, page_faults() - faults);
      const Arena::Stats stats = t.step->arena()->stats();
      CHECK(stats.unplanned == 0);
      CHECK(stats.live == 0);
      if (mode == StepMode::replayed) CHECK(backend(kCPU).memory().allocations == 0);
    }
    CHECK(host().system().allocations == asked);
    CHECK(host().cached_bytes() == cached);
    if (!kSanitized) CHECK(least == 0);
  }
}

TEST_CASE("training step: a replayed step is listed as the first one was", "[training][ledger]") {
  Training t(small("gpt-smoke", 0.1), kShape, StepMode::replayed);
  std::string first;
  for (int step = 0; step < 3; ++step) {
    const Ledger ledger;
    t.run();
    if (step == 0) first = ledger.text();
    CHECK(ledger.text() == first);
  }
  CHECK_THAT(first, Contains("adamw_update"));
}

TEST_CASE(
    "training step: evaluation between steps, tensors that stay and other modes change nothing",
    "[training][program]") {
  const ModelConfig c = small("llama-smoke", 0.1);
  Training want(c, kShape, StepMode::eager), got(c, kShape, StepMode::replayed);
  Tensor held;
  for (int step = 0; step < 6; ++step) {
    if (step == 3) got.step->set_mode(StepMode::planned);
    if (step == 4) got.step->set_mode(StepMode::replayed);
    const auto a = want.run(), b = got.run();
    CHECK(a.loss == b.loss);
    CHECK(a.norm == b.norm);
    const Tensor ids = zeros({1, 8}, DType::i64, kCPU);
    const PauseTape values_only;
    CHECK(got.model->loss(ids, ids).item() == want.model->loss(ids, ids).item());
  }
  CHECK(got.weights() == want.weights());
}

TEST_CASE("training step: a replayed step with a NaN ends with the gradients there, and goes on",
          "[training][program][error]") {
  const ModelConfig c = small("llama-smoke", 0);
  Training t(c, kShape, StepMode::replayed), want(c, kShape, StepMode::eager);
  for (int step = 0; step < 2; ++step) t.run(), want.run();
  REQUIRE(t.step->recorded_calls() > 0);
  const auto batch = [&](int64_t, const BatchSpans& to) {
    std::fill(to.ids.begin(), to.ids.end(), 1);
    std::fill(to.targets.begin(), to.targets.end(), 2);
  };
  Tensor weight = t.model->blocks[1]->mlp->down.weight;
  const float before = weight.host<float>()[3];
  weight.host<float>()[3] = INFINITY;
  const auto bad = t.step->gradients(batch);
  CHECK_FALSE(std::isfinite(bad.loss));
  t.step->discard();
  weight.host<float>()[3] = before;
  const auto wrong = [&](int64_t, const BatchSpans& to) {
    std::fill(to.ids.begin(), to.ids.end(), 1000000);
    std::fill(to.targets.begin(), to.targets.end(), 2);
  };
  CHECK_THROWS_WITH(t.step->gradients(wrong), Contains("ids must be in 0.."));
  t.step->discard();
  const auto a = t.run(), b = want.run();
  CHECK(a.loss == b.loss);
  CHECK(t.weights() == want.weights());
}

TEST_CASE("account: the fewest layers whose recomputation fits", "[memory]") {
  const ModelConfig c = small("llama-smoke", 0);
  ReportOptions o;
  o.batch = 8, o.seq = 64, o.train = true;
  std::vector<double> peaks, flops;
  for (int64_t n = 0; n <= 3; ++n) {
    o.recompute = recompute_first(n, 3);
    const Report r = make_report(c, o);
    peaks.push_back(r.peak);
    flops.push_back(r.cost.flops);
  }
  CHECK(peaks[1] < peaks[0]);
  CHECK(peaks[2] < peaks[1]);
  CHECK(peaks[3] == peaks[2]);  // what the last layer computes again is needed at the peak
  for (size_t n = 0; n < 3; ++n) {
    const RecomputeChoice choice = choose_recompute(c, o, peaks[n]);
    CHECK(choice.fits);
    CHECK(choice.layers == static_cast<int64_t>(n));
    CHECK(choice.peak == peaks[n]);
    CHECK(choice.extra_flops == flops[n] - flops[0]);
  }
  CHECK_FALSE(choose_recompute(c, o, peaks[3] - 1).fits);
  CHECK(choose_recompute(c, o, peaks[2]).recompute == "0-1");
}
