// The gradient noise scale (lecture claim L82).
#include <catch2/catch.hpp>
#include <random>

#include "models/probes.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

ProbeValues probed(Trainer& t) {
  Probes probes({"noise_scale"}, t.optimizer().groups());
  t.measure_noise(true);
  probes.noise(t.step().noise);
  return probes.values();
}

double value(const ProbeValues& v, const std::string& place) {
  for (const auto& [name, x] : v.at("noise_scale"))
    if (name == place) return x;
  FAIL("no " << place);
  return 0;
}

}  // namespace

TEST_CASE("noise scale: gradients of known mean and variance give both back", "[probes][L82]") {
  constexpr int kPasses = 4, kSteps = 20000, kSize = 8;
  constexpr double kMean = 0.5, kDeviation = 2;
  std::mt19937 engine(1);
  std::normal_distribution<double> normal(kMean, kDeviation);
  double trace = 0, square = 0;
  for (int step = 0; step < kSteps; ++step) {
    GradientNoise g{0, 0, kPasses};
    for (int i = 0; i < kSize; ++i) {
      double sum = 0;
      for (int pass = 0; pass < kPasses; ++pass) {
        sum += normal(engine) / kPasses;
        if (pass == 0) g.first_squares += sum * sum;
      }
      g.squares += sum * sum;
    }
    trace += g.trace() / kSteps;
    square += g.square() / kSteps;
  }
  CHECK(square == Approx(kSize * kMean * kMean).epsilon(0.05));
  CHECK(trace == Approx(kSize * kDeviation * kDeviation).epsilon(0.05));
}

TEST_CASE("noise scale: of a training, replayed or not; one pass has none", "[probes][L82]") {
  RunConfig c = tiny(4);
  Made replayed(c), eager(c), single(tiny(1));
  eager.trainer->set_mode(StepMode::eager);
  for (int i = 0; i < 4; ++i) {
    const ProbeValues a = probed(*replayed.trainer), b = probed(*eager.trainer);
    CHECK(a == b);
    CHECK(value(a, "trace") > 0);
    CHECK(value(a, "batches") == value(a, "trace") / value(a, "square"));
  }
  CHECK(probed(*single.trainer).at("noise_scale").empty());
  c.train.accumulation = 1;
  c.train.probes = {"noise_scale"};
  CHECK_THROWS_WITH(c.resolve_and_check("c"), Contains("set accumulation to 2 or more"));
}
