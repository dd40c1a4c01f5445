// Segments that are computed again in the backward pass: same bits, less memory, all of it listed.
#include <catch2/catch.hpp>
#include <sstream>

#include "autograd/checkpoint.h"
#include "autograd/functional.h"
#include "core/ops/accumulate.h"
#include "models/build.h"
#include "models/recompute.h"
#include "models/zoo.h"
#include "tests/registered.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

/// Two small layers with all three kinds of dropout.
ModelConfig small(const char* preset) {
  ModelConfig c = find_preset(preset).config.model;
  c.layers = 3;
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0.1;
  c.resolve();
  return c;
}

Tensor ids(uint64_t stream, Device device) {
  std::vector<int64_t> v(32);
  for (size_t i = 0; i < v.size(); ++i) v[i] = Philox::word(3, stream, i) % 200;
  return from_host<int64_t>(v, {2, 16}, device);
}

struct Outcome {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
  uint64_t position = 0;
  std::string ledger;
  size_t saved = 0, peak = 0;
  std::vector<LedgerTotal> phases;
  ModelFlops model;
};

std::vector<double> numbers(const Tensor& t) {
  if (t.dtype() == DType::f64) return to_host<double>(t);
  const auto v = to_host<float>(t);
  return {v.begin(), v.end()};
}

/// Two accumulated passes of one step.
Outcome step(const ModelConfig& c, const std::string& recompute, Device device, DType dtype) {
  const auto model = build_model(c, dtype, device);
  initialise(*model, c, 1);
  model->requires_grad();
  model->recompute = recompute_layers(recompute, c.layers);
  Generator dropout(5);
  Outcome o;
  const Ledger ledger;
  for (uint64_t pass = 0; pass < 2; ++pass) {
    const Tensor x = ids(1 + pass, device), y = ids(3 + pass, device);
    const size_t before = backend(device).memory().live;
    backend(device).reset_peak();
    Tape tape;
    const Tensor loss = model->loss(x, y, 64, &dropout);
    o.saved = backend(device).memory().live - before;
    if (device != kMeta) o.loss += loss.item();
    tape.backward(loss);
    o.peak = backend(device).memory().peak - before;
  }
  o.position = dropout.position();
  o.ledger = ledger.text();
  o.phases = ledger.totals(Ledger::By::phase);
  o.model = ledger.model_total();
  for (const auto& [name, t] : model->named_parameters()) {
    REQUIRE(t.grad().defined());
    if (device != kMeta) o.gradients.push_back(numbers(t.grad()));
  }
  return o;
}

double flops_of(const Outcome& o, const std::string& phase) {
  for (const LedgerTotal& t : o.phases) {
    if (t.key == phase) return t.cost.flops;
  }
  return 0;
}

Tensor leaf(std::initializer_list<double> v) {
  Tensor t = from_host<double>(v, {static_cast<int64_t>(v.size())}, kReference);
  t.requires_grad_();
  return t;
}

}  // namespace

TEST_CASE(
    "recompute: loss, all gradients and the random streams are those without it, with dropout",
    "[recompute]") {
  for (const char* preset : {"gpt-smoke", "llama-smoke"}) {
    for (const auto& [device, dtype] :
         {std::pair{kReference, DType::f64}, {kReference, DType::f32}, {kCPU, DType::f32}}) {
      INFO(preset << " on " << to_text(device) << " in " << to_text(dtype));
      const ModelConfig c = small(preset);
      const Outcome want = step(c, "none", device, dtype);
      for (const char* choice : {"all", "1", "0,2"}) {
        const Outcome got = step(c, choice, device, dtype);
        CHECK(got.loss == want.loss);
        CHECK(got.gradients == want.gradients);
        CHECK(got.position == want.position);
        CHECK(got.saved < want.saved);
      }
    }
  }
}

TEST_CASE("recompute: the ledger shows what it costs, utilisation does not count it",
          "[recompute]") {
  const ModelConfig c = small("llama-smoke");
  const Outcome plain = step(c, "none", kMeta, DType::f32), all = step(c, "all", kMeta, DType::f32),
                one = step(c, "1", kMeta, DType::f32);
  CHECK(flops_of(plain, "recompute") == 0);
  CHECK(flops_of(one, "recompute") > 0);
  CHECK(flops_of(all, "recompute") == 3 * flops_of(one, "recompute"));
  CHECK(flops_of(all, "backward") == flops_of(plain, "backward"));
  CHECK(all.model.full == plain.model.full);
  CHECK(all.model.causal == plain.model.causal);
  CHECK(all.saved < one.saved);
  CHECK(one.saved < plain.saved);
  CHECK(all.peak < plain.peak);
  CHECK_THAT(all.ledger, Contains("linear.forward  contraction  recompute  blocks[2].attention"));
}

TEST_CASE("recompute: real runs and meta list the same calls and the same peak", "[recompute]") {
  for (const char* preset : {"gpt-smoke", "llama-smoke"}) {
    const ModelConfig c = small(preset);
    const Outcome meta = step(c, "0-1", kMeta, DType::f32);
    for (Device device : {kReference, kCPU}) {
      const Outcome real = step(c, "0-1", device, DType::f32);
      CHECK(real.ledger == meta.ledger);
      CHECK(real.saved == meta.saved);
      CHECK(real.peak == meta.peak);
    }
  }
}

TEST_CASE("checkpoint: segments may lie in segments, share leaves and take several inputs",
          "[recompute]") {
  const auto run = [](bool again) {
    Tensor w = leaf({0.5, -2}), x = leaf({3, 4});
    const auto call = [&](const auto& f, const auto&... in) {
      return again ? checkpoint(f, nullptr, in...) : f(in..., nullptr);
    };
    const auto inner = [w](const Tensor& a, Generator*) { return mul(exp(a), w); };
    const auto outer = [&](const Tensor& a, const Tensor& b, Generator*) {
      return add(call(inner, mul(a, w)), mul(b, call(inner, b)));
    };
    Tape tape;
    const Tensor h = mul(x, w);
    const Tensor y = add(call(outer, h, x), mul(h, w));
    tape.backward(sum(y));
    CHECK(tape.size() == 0);
    return std::pair{to_host<double>(w.grad()), to_host<double>(x.grad())};
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("checkpoint: a tensor may come in twice, and a leaf as an input and by itself",
          "[recompute]") {
  const auto run = [](bool again) {
    Tensor w = leaf({0.5, -2});
    const auto f = [w](const Tensor& a, const Tensor& b, const Tensor& c, Generator*) {
      return std::array{mul(mul(a, b), w), mul(c, a), exp(b)};
    };
    Tape tape;
    const Tensor h = mul(w, w);
    const auto y = again ? checkpoint(f, nullptr, h, h, w) : f(h, h, w, nullptr);
    tape.backward(sum(add(add(y[0], y[2]), mul(y[1], h))));
    return to_host<double>(w.grad());
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("checkpoint: what needs no gradient is not recorded, and without a tape nothing changes",
          "[recompute]") {
  const Tensor x = from_host<double>({1, 2}, {2}, kReference);
  const auto twice = [](const Tensor& a, Generator*) { return add(a, a); };
  CHECK(to_host<double>(checkpoint(twice, nullptr, x)) == std::vector<double>{2, 4});
  Tape tape;
  checkpoint(twice, nullptr, x);
  CHECK(tape.size() == 0);
  Tensor w = leaf({1, 1});
  checkpoint([&](const Tensor& a, Generator*) { return mul(a, w); }, nullptr, x);
  std::ostringstream text;
  tape.print(text);
  CHECK(text.str() == "0  checkpoint  inputs -1 0  \n");
}

TEST_CASE("checkpoint: what would change the gradient is refused by name", "[recompute][error]") {
  Tensor w = leaf({1, 2}), x = leaf({3, 4});
  Tape tape;
  const Tensor h = mul(x, x);
  CHECK_THROWS_WITH(checkpoint([&](const Tensor& a, Generator*) { return mul(a, h); }, nullptr, x),
                    Contains("was recorded outside of it") && Contains("pass it as an input"));
  const Tensor y = checkpoint([&](const Tensor& a, Generator*) { return mul(a, w); }, nullptr, h);
  ops::Accumulate::into(w, x.detach());
  CHECK_THROWS_WITH(tape.backward(sum(y)), Contains("was changed in place"));
  CHECK(tape.size() == 0);
  int calls = 0;
  Generator g(1);
  const Tensor z = checkpoint(
      [&](const Tensor& a, Generator* streams) {
        return ++calls == 1 ? dropout(a, 0.5, *streams) : mul(a, a);
      },
      &g, mul(x, x));
  CHECK_THROWS_WITH(tape.backward(sum(z)), Contains("the same random streams"));
  tape.backward(sum(mul(w, w)));  // usable again
  CHECK(to_host<double>(w.grad()) == std::vector<double>{8, 12});
}

TEST_CASE("recompute: layers are named one by one, in ranges, or all", "[recompute][error]") {
  CHECK(recompute_layers("none", 3) == std::vector<bool>{false, false, false});
  CHECK(recompute_layers("all", 2) == std::vector<bool>{true, true});
  CHECK(recompute_layers("1,3-4", 5) == std::vector<bool>{false, true, false, true, true});
  for (int64_t n = 0; n <= 3; ++n) {
    const auto chosen = recompute_layers(recompute_first(n, 3), 3);
    CHECK(std::count(chosen.begin(), chosen.end(), true) == n);
  }
  for (const char* bad : {"", "some", "1,", "-1", "1-", "0-1-2", "99999999999999999999"})
    CHECK_THROWS_WITH(recompute_layers(bad, 3), Contains("must be none, all, or layers"));
  CHECK_THROWS_WITH(recompute_layers("1-3", 3), Contains("the model has 0 to 2"));
  CHECK_THROWS_WITH(recompute_layers("2-1", 3), Contains("names the layers 2 to 1"));
}
