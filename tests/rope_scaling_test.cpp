// Rotary positions for longer texts: frequencies, tables, properties. The claims of the lecture that a
// test shows stand in its tags.
#include <catch2/catch.hpp>
#include <numbers>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "backends/register_all.h"
#include "core/ops/position.h"

using namespace tally;
using Catch::Matchers::Contains;
using Scaled = RopeScalingKind;

namespace {

struct Setup {
  Setup() { register_all(); }
};

Tensor random(const Shape& s, uint64_t seed, DType dtype = DType::f64, Device device = kReference) {
  return make_input(normal(s, seed), dtype, device);
}
double dot(const Tensor& a, const Tensor& b) {
  const auto x = to_doubles(a), y = to_doubles(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
RopeScaling scaling(Scaled kind, double factor, int64_t original = 0) {
  RopeScaling s;
  s.kind = kind;
  s.factor = factor;
  s.original_context = original;
  return s;
}
std::string error_of(int64_t dim, double base, const RopeScaling& s) {
  try {
    rope_turns(dim, base, s, 100);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE_METHOD(Setup, "rope scaling: what each kind does to the slowest and the fastest pair",
                 "[op][L47][L52]") {
  const int64_t dim = 64;
  const double base = 10000, factor = 8;
  const auto plain = rope_turns(dim, base).frequencies;
  CHECK(plain == rope_frequencies(dim, base));
  const auto linear = rope_turns(dim, base, scaling(Scaled::linear, factor)).frequencies;
  for (size_t i = 0; i < plain.size(); ++i) CHECK(linear[i] == Approx(plain[i] / factor));
  const auto ntk = rope_turns(dim, base, scaling(Scaled::ntk, factor)).frequencies;
  CHECK(ntk.front() == plain.front());
  CHECK(ntk.back() == Approx(plain.back() / factor).epsilon(1e-12));
  for (Scaled kind : {Scaled::yarn, Scaled::llama3}) {
    const auto f = rope_turns(dim, base, scaling(kind, factor, 4096)).frequencies;
    CHECK(f.front() == plain.front());
    CHECK(f.back() == Approx(plain.back() / factor).epsilon(1e-12));
    for (size_t i = 0; i < f.size(); ++i) {  // between the two, and slower from pair to pair
      CHECK(f[i] <= plain[i] * (1 + 1e-12));
      CHECK(f[i] >= plain[i] / factor * (1 - 1e-12));
      CHECK((i == 0 || f[i] < f[i - 1]));
    }
  }
  RopeScaling part = scaling(Scaled::proportional, 1);
  part.fraction = 0.25;
  const auto still = rope_turns(dim, base, part).frequencies;
  for (size_t i = 0; i < still.size(); ++i) CHECK(still[i] == (i < 8 ? plain[i] : 0));
}

TEST_CASE_METHOD(Setup, "rope scaling: dynamic NTK and LongRoPE follow the length of the text",
                 "[op][L52]") {
  const RopeScaling dynamic = scaling(Scaled::dynamic_ntk, 2, 100);
  const auto plain = rope_turns(16, 10000).frequencies;
  CHECK(rope_turns(16, 10000, dynamic, 100).frequencies == plain);
  // At twice the length the factor is 2 * 2 - 1 = 3.
  CHECK(rope_turns(16, 10000, dynamic, 200).frequencies ==
        rope_turns(16, 10000, scaling(Scaled::ntk, 3)).frequencies);
  RopeScaling longer = scaling(Scaled::longrope, 8, 100);
  longer.short_factors = {1, 1}, longer.long_factors = {2, 4};
  const auto shorter = rope_turns(4, 100, longer, 100), far = rope_turns(4, 100, longer, 101);
  CHECK(shorter.frequencies == rope_turns(4, 100).frequencies);
  CHECK(far.frequencies[0] == 0.5);
  CHECK(far.frequencies[1] == Approx(0.025));
  CHECK(far.attention_factor == Approx(std::sqrt(1 + std::log(8.0) / std::log(100.0))));
  CHECK(shorter.attention_factor == far.attention_factor);
  CHECK(follows_length(Scaled::longrope));
  CHECK_FALSE(follows_length(Scaled::yarn));
}

TEST_CASE_METHOD(Setup, "rope scaling: YaRN's attention factor, and DeepSeek's", "[op][L52]") {
  RopeScaling s = scaling(Scaled::yarn, 40, 4096);
  CHECK(rope_turns(64, 10000, s).attention_factor == Approx(0.1 * std::log(40.0) + 1));
  CHECK(rope_softmax_scale(s) == 1);
  s.mscale = s.mscale_all_dim = 1;
  CHECK(rope_turns(64, 10000, s).attention_factor == 1);
  CHECK(rope_softmax_scale(s) == Approx(std::pow(0.1 * std::log(40.0) + 1, 2)));
  s.attention_factor = 1.25;
  CHECK(rope_turns(64, 10000, s).attention_factor == 1.25);
  const Tensor table = rope_table(RopeRows{3, 2}, rope_turns(64, 10000, s), DType::f64, kReference);
  CHECK(table.shape() == Shape{2, 64});
  CHECK(table.host<double>()[0] == Approx(1.25 * std::cos(3.0)).epsilon(1e-14));
  CHECK(table.host<double>()[64 + 32] == Approx(1.25 * std::sin(4.0)).epsilon(1e-14));
}

TEST_CASE_METHOD(Setup, "rope scaling: what has no meaning is refused with the numbers",
                 "[op][error]") {
  CHECK_THAT(error_of(7, 10000, {}), Contains("must be even and at least 2; got 7"));
  CHECK_THAT(error_of(8, -1, {}), Contains("base must be a finite number above 0; got -1"));
  CHECK_THAT(error_of(8, 1e4, scaling(Scaled::linear, 0.5)), Contains("at least 1; got 0.5"));
  CHECK_THAT(error_of(2, 1e4, scaling(Scaled::ntk, 2)), Contains("more than one pair"));
  for (Scaled kind : {Scaled::dynamic_ntk, Scaled::yarn, Scaled::llama3, Scaled::longrope})
    CHECK_THAT(error_of(8, 1e4, scaling(kind, 2)), Contains("needs the original context"));
  RopeScaling s = scaling(Scaled::yarn, 2, 100);
  s.beta_slow = 64;
  CHECK_THAT(error_of(8, 1e4, s), Contains("beta_fast > beta_slow > 0"));
  s = scaling(Scaled::llama3, 2, 100);
  s.low_frequency = 5;
  CHECK_THAT(error_of(8, 1e4, s), Contains("high_frequency > low_frequency > 0"));
  s = scaling(Scaled::longrope, 2, 100);
  s.short_factors = {1, 1, 1, 1}, s.long_factors = {1, 2};
  CHECK_THAT(error_of(8, 1e4, s), Contains("each of the 4 pairs; got 2"));
  s.long_factors = {1, 2, 3, 0};
  CHECK_THAT(error_of(8, 1e4, s), Contains("finite numbers above 0; got 0"));
  s = scaling(Scaled::proportional, 1);
  s.fraction = 0;
  CHECK_THAT(error_of(8, 1e4, s), Contains("must lie in (0, 1]; got 0"));
}

TEST_CASE_METHOD(Setup,
                 "rope: single precision is what public programs form, and how far off it is",
                 "[op][F20]") {
  const int64_t position = 131071, dim = 128;
  const auto row = [&](RopeArithmetic how) {
    return to_doubles(rope_table(RopeRows{position, 1, how}, rope_turns(dim, 10000, {}, 0, how),
                                 DType::f64, kReference));
  };
  const auto exact = row(RopeArithmetic::float64), single = row(RopeArithmetic::float32);
  double worst = 0;
  for (size_t i = 0; i < 64; ++i) {
    const double turn =
        std::fabs(std::atan2(single[i + 64], single[i]) - std::atan2(exact[i + 64], exact[i]));
    worst = std::max(worst, std::min(turn, 2 * std::numbers::pi - turn));
  }
  CHECK(worst > 3e-3);  // the last digit of pow decides
  CHECK(worst < 9e-3);
  // The rule itself: each step rounded to a float.
  const float period = static_cast<float>(std::pow(10000.0, double(2.0F / 128.0F)));
  const float angle = static_cast<float>(position) * (1.0F / period);
  CHECK(single[1] == static_cast<double>(static_cast<float>(std::cos(double(angle)))));
}

TEST_CASE_METHOD(Setup, "rope: scaled or not, a product depends on the distance alone",
                 "[op][L45][L46][L50][L52]") {
  const int64_t size = 16;
  const Tensor q = random({1, 1, 1, size}, 1), k = random({1, 1, 1, size}, 2);
  RopeScaling longer = scaling(Scaled::longrope, 4, 16);
  longer.short_factors = std::vector<double>(8, 1), longer.long_factors = std::vector<double>(8, 3);
  RopeScaling part = scaling(Scaled::proportional, 1);
  part.fraction = 0.5;
  for (const RopeScaling& s : {RopeScaling{}, scaling(Scaled::linear, 4), scaling(Scaled::ntk, 4),
                               scaling(Scaled::dynamic_ntk, 4, 16), scaling(Scaled::yarn, 4, 16),
                               scaling(Scaled::llama3, 4, 64), longer, part}) {
    const Tensor table =
        rope_table(RopeRows{0, 64}, rope_turns(size, 100, s, 64), DType::f64, kReference);
    for (auto pairs : {ops::RotaryPairs::half_split, ops::RotaryPairs::interleaved}) {
      const auto turned = [&](int64_t m, int64_t n) {
        return dot(rope(q, table, {pairs, m}), rope(k, table, {pairs, n}));
      };
      INFO("kind " << static_cast<int>(s.kind));
      CHECK(turned(20, 24) == Approx(turned(3, 7)).epsilon(1e-11));
      CHECK(turned(50, 54) == Approx(turned(3, 7)).epsilon(1e-11));
      CHECK(std::fabs(turned(3, 8) - turned(3, 7)) > 1e-6);
    }
  }
}

TEST_CASE_METHOD(Setup, "rope: the backward is the transpose, attention factor included",
                 "[op][L48]") {
  const Tensor table = rope_table(RopeRows{0, 9}, rope_turns(6, 100, scaling(Scaled::yarn, 4, 16)),
                                  DType::f64, kReference);
  for (auto pairs : {ops::RotaryPairs::half_split, ops::RotaryPairs::interleaved}) {
    const Tensor x = random({2, 3, 2, 7}, 1), dy = random({2, 3, 2, 7}, 2);
    ops::Rope::Saved saved;
    const Tensor y = ops::Rope::forward(x, table, {}, {pairs, 4}, &saved);
    const Tensor dx = ops::Rope::backward(dy, std::move(saved))[0];
    CHECK(dot(y, dy) == Approx(dot(x, dx)).epsilon(1e-13));  // <R x, dy> = <x, R^T dy>
  }
}
