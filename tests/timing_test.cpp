// What only a clock can show. CTest runs this program alone (RUN_SERIAL): beside another one,
// two threads on two cores wait for it, and what waits longer is chance.
#include "tests/timing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "data/tokenizer_io.h"
#include "optim/adamw.h"
#include "tests/data_helpers.h"
#include "tests/registered.h"
#include "tests/threads.h"

using namespace tally;

TEST_CASE("gemm: subnormal operands take no longer than others and count as zero", "[F17]") {
  constexpr int64_t n = 512;
  const int threads = GENERATE(1, 2);
  const cpu::GemmProvider provider = GENERATE(cpu::GemmProvider::own, cpu::GemmProvider::openblas);
  const test::Threads scope(threads);
  const auto filled = [](float value) { return std::vector<float>(n * n, value); };
  const std::vector<float> tiny = filled(1e-39f), normal = filled(1e-3f), other = filled(0.5f);
  std::vector<float> small(n * n), usual(n * n);
  const auto multiply = [&](const std::vector<float>& operand, std::vector<float>& c) {
    return [&](size_t) {
      cpu::Gemm<float> g{false, false, n, n, n};
      g.lda = g.ldb = g.ldc = n, g.a = other.data(), g.b = other.data(), g.c = c.data();
      (threads == 1 ? g.a : g.b) = operand.data();  // one operand each way
      if (provider == cpu::GemmProvider::own)
        cpu::gemm_own(cpu::isa(), g);
      else
        cpu::gemm_openblas(g);
    };
  };
  // 213 times slower when they are not flushed.
  const double quotient =
      test::time_quotient(1, multiply(tiny, small), multiply(normal, usual), 1.1, 1000);
  INFO(threads << " threads, " << (provider == cpu::GemmProvider::own ? "own" : "openblas"));
  CHECK(quotient <= 1.1);
  CHECK(std::ranges::all_of(small, [](float v) { return v == 0.0f; }));
}

TEST_CASE("adamw: moments that decay to nothing do not slow down", "[optim][F17]") {
  const test::Threads scope(2);  // both have a share of 1 << 16 numbers
  // One run decays through the subnormals, the other has normal moments all the way.
  const auto fresh = [](float moment) {
    Tensor w = zeros({1 << 16}, DType::f32, kCPU).requires_grad_();
    w.set_grad(zeros({1 << 16}, DType::f32, kCPU));
    auto optimizer = std::make_unique<optim::AdamW>(
        std::vector<optim::ParameterGroup>{{"all", {{"w", w}}, 0, 1}}, optim::AdamW::Options{});
    for (auto& [name, t] : optimizer->state()) std::ranges::fill(t.host<float>(), moment);
    return optimizer;
  };
  std::unique_ptr<optim::AdamW> small, usual;
  const auto step = [&](std::unique_ptr<optim::AdamW>& optimizer, float moment) {
    return [&optimizer, fresh, moment](size_t i) {
      if (i == 0) optimizer = fresh(moment);
      optimizer->step(1e-3);
    };
  };
  CHECK(test::time_quotient(1000, step(small, 1e-30f), step(usual, 1e-3f), 1.1, 20) <= 1.1);
  for (auto& [name, t] : small->state()) {  // what is subnormal is 0
    for (float v : t.host<float>()) REQUIRE((v == 0 || std::fabs(v) >= 1.17549435e-38f));
  }
  CHECK(small->state()[0].second.host<float>()[0] == 0);  // 1e-30 0.9^1000
}

TEST_CASE("tokenizer: twice the text takes about twice the time", "[F42]") {
  const Tokenizer t = load_tokenizer(test::tokenizer_data("gpt2_1000.tokenizer.json"));
  const std::string cases[] = {test::repeated("a", 200'000), test::repeated("^", 200'000),
                               test::random_letters(200'000), test::repeated(" ", 200'000)};
  for (const std::string& text : cases) {
    const std::string half = text.substr(0, text.size() / 2);
    const double quotient = test::time_quotient(
        1, [&](size_t) { t.encode(text); }, [&](size_t) { t.encode(half); }, 2.5);
    INFO("200,000 characters that begin with " << text.substr(0, 5));
    CHECK(quotient <= 2.5);
  }
}
