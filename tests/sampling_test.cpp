#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.h"
#include "models/sampling.h"

using namespace tally;

namespace {

std::vector<float> logits_of(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

SamplingOptions top_p(double p) {
  SamplingOptions o;
  o.top_p = p;
  return o;
}

SamplingOptions temperature(double t) {
  SamplingOptions o;
  o.temperature = t;
  return o;
}

void check_close(const std::vector<double>& got, std::initializer_list<double> want) {
  REQUIRE(got.size() == want.size());
  size_t i = 0;
  for (double w : want) CHECK(got[i++] == Approx(w).margin(1e-4));
}

}  // namespace

TEST_CASE("sampling: top_p keeps the smallest set that reaches p", "[sampling][F52]") {
  const auto logits = logits_of({0.5, 0.3, 0.15, 0.05});
  check_close(sampling_probabilities(logits, top_p(0)), {1, 0, 0, 0});
  check_close(sampling_probabilities(logits, top_p(0.5)), {1, 0, 0, 0});  // reached, not passed
  check_close(sampling_probabilities(logits, top_p(0.500001)), {0.625, 0.375, 0, 0});
  check_close(sampling_probabilities(logits, top_p(0.8)), {0.625, 0.375, 0, 0});
  check_close(sampling_probabilities(logits, top_p(0.95)), {0.5263, 0.3158, 0.1579, 0});
  check_close(sampling_probabilities(logits, top_p(1)), {0.5, 0.3, 0.15, 0.05});
}

TEST_CASE("sampling: top_k and min_p drop what is unlikely", "[sampling]") {
  const auto logits = logits_of({0.5, 0.3, 0.15, 0.05});
  SamplingOptions o;
  o.top_k = 2;
  check_close(sampling_probabilities(logits, o), {0.625, 0.375, 0, 0});
  o = {};
  o.min_p = 0.25;
  check_close(sampling_probabilities(logits, o), {0.5263, 0.3158, 0.1579, 0});
}

TEST_CASE("sampling: small temperatures are the best token, an infinite one is uniform",
          "[sampling][F52]") {
  const std::vector<float> logits = {1, 2, 3};
  for (double t : {0.0, 1e-4, 1e-45})
    check_close(sampling_probabilities(logits, temperature(t)), {0, 0, 1});
  check_close(sampling_probabilities(logits, temperature(INFINITY)), {1 / 3.0, 1 / 3.0, 1 / 3.0});
  const std::vector<float> tie = {1, 7, 7};
  for (double t : {0.0, 1e-45}) {
    check_close(sampling_probabilities(tie, temperature(t)), {0, 1, 0});
    CHECK(sample_token(tie, temperature(t), 0.999) == 1);
  }
  CHECK(sample_token(logits, temperature(1e-4), 0.999) == 2);
  const std::vector<float> masked = {-INFINITY, 0};
  check_close(sampling_probabilities(masked, temperature(1)), {0, 1});
}

TEST_CASE("sampling: refuses options and logits that mean nothing", "[sampling][error][F52]") {
  const std::vector<float> logits = {1, 2, 3};
  for (double p : {-0.1, 1.1, std::nan("")})
    CHECK_THROWS_WITH(sampling_probabilities(logits, top_p(p)),
                      Catch::Contains("top_p must lie in 0..1"));
  CHECK_THROWS_WITH(sampling_probabilities(logits, temperature(-1)),
                    Catch::Contains("temperature must be 0 or more"));
  CHECK_THROWS_WITH(sampling_probabilities(logits, temperature(std::nan(""))),
                    Catch::Contains("temperature"));
  const std::vector<float> nan = {1, NAN}, none = {-INFINITY, -INFINITY};
  CHECK_THROWS_WITH(sampling_probabilities(nan, {}), Catch::Contains("logit 1 is NaN"));
  CHECK_THROWS_WITH(sampling_probabilities(none, {}), Catch::Contains("every logit is -inf"));
  CHECK_THROWS_AS(sampling_probabilities({}, {}), Error);
}

TEST_CASE("sampling: a uniform number picks tokens in proportion", "[sampling]") {
  const auto logits = logits_of({0.5, 0.3, 0.15, 0.05});
  std::vector<int> count(4, 0);
  for (int i = 0; i < 1000; ++i)
    ++count[static_cast<size_t>(sample_token(logits, {}, (i + 0.5) / 1000))];
  CHECK(count == std::vector<int>{500, 300, 150, 50});
  CHECK(sample_token(logits, {}, 0.9999999999999999) == 3);
}
