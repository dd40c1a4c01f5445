// The ledger: what it lists, how it adds up, and how it is written down.
#include <catch2/catch.hpp>

#include "autograd/functional.h"
#include "autograd/tape.h"
#include "backends/register_all.h"
#include "core/ledger.h"
#include "core/ops/rms_norm.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Setup {
  Setup() { register_all(); }
};

Tensor ones(const Shape& shape, Device device = kReference) {
  return full(shape, 1, DType::f32, device);
}

// x (2,3) -> linear -> rms_norm -> sum, forward and backward.
void small_step(Device device) {
  Tensor w = ones({4, 3}, device), gain = ones({4}, device);
  w.requires_grad_();
  gain.requires_grad_();
  Tape tape;
  Tensor h;
  {
    const ModuleScope block("blocks", 1);
    {
      const ModuleScope inner("mlp");
      h = linear(ones({2, 3}, device), w);
    }
    h = rms_norm(h, gain);
  }
  backward(sum(h));
}

}  // namespace

TEST_CASE_METHOD(Setup, "ledger: lists each call with phase, layer, shapes and cost", "[ledger]") {
  const Ledger ledger;
  small_step(kReference);
  const auto entries = ledger.entries();
  REQUIRE(entries.size() == 6);
  const char* names[] = {"linear.forward", "rms_norm.forward",  "sum.forward",
                         "sum.backward",   "rms_norm.backward", "linear.backward"};
  const char* modules[] = {"blocks[1].mlp", "blocks[1]", "", "", "blocks[1]", "blocks[1].mlp"};
  for (size_t i = 0; i < 6; ++i) {
    CHECK(std::string(entries[i].op) == names[i]);
    CHECK(std::string(entries[i].module) == modules[i]);
    CHECK(entries[i].phase == (i < 3 ? Phase::forward : Phase::backward));
    CHECK(entries[i].dtype == DType::f32);
    CHECK(entries[i].device == kReference);
    CHECK_FALSE(entries[i].fallback);
  }
  CHECK(entries[0].shapes == std::vector<Shape>{{2, 3}, {4, 3}, {2, 4}});  // no bias: left out
  CHECK(entries[0].cost == Cost{2.0 * 2 * 4 * 3, 4.0 * (6 + 12), 4.0 * 8});
  CHECK(entries[0].model.full == 48);
  CHECK(entries[0].model.causal == 48);
  CHECK(entries[1].model.full == 0);   // no product
  CHECK(entries[5].model.full == 48);  // x wants no gradient: dw alone
  CHECK(entries[0].kind == Kind::contraction);
  CHECK(entries[1].kind == Kind::normalization);
}

TEST_CASE_METHOD(
    Setup,
    "ledger: the backward of a product counts twice its forward when both gradients are wanted",
    "[ledger]") {
  Tensor x = ones({5, 3}), w = ones({4, 3});
  x.requires_grad_();
  w.requires_grad_();
  const Ledger ledger;
  Tape tape;
  backward(sum(linear(x, w)));
  CHECK(ledger.entries()[0].model.full == 2.0 * 5 * 4 * 3);
  CHECK(ledger.entries().back().model.full == 2 * 2.0 * 5 * 4 * 3);
}

TEST_CASE_METHOD(Setup,
                 "ledger: totals by op, layer, kind, phase and any key, in order of appearance",
                 "[ledger]") {
  const Ledger ledger;
  small_step(kReference);
  const auto by_layer = ledger.totals(Ledger::By::layer);
  REQUIRE(by_layer.size() == 3);
  CHECK(by_layer[0].key == "blocks[1].mlp");
  CHECK(by_layer[1].key == "blocks[1]");
  CHECK(by_layer[2].key == "(outside)");
  CHECK(by_layer[0].calls == 2);
  CHECK(by_layer[0].model.full == 96);
  const auto by_phase = ledger.totals(Ledger::By::phase);
  REQUIRE(by_phase.size() == 2);
  CHECK(by_phase[0].key == "forward");
  CHECK(by_phase[1].key == "backward");
  CHECK(by_phase[0].calls == 3);
  CHECK(ledger.totals(Ledger::By::op).size() == 6);
  CHECK(ledger.totals(Ledger::By::kind)[0].key == "contraction");
  const auto all = ledger.totals([](const Entry&) { return "all"; });
  REQUIRE(all.size() == 1);
  CHECK(all[0].cost == ledger.total());
  CHECK(all[0].calls == 6);
  Cost sum;
  for (const LedgerTotal& t : by_layer) sum += t.cost;
  CHECK(sum == ledger.total());
  CHECK(ledger.model_total().full == 96);
}

TEST_CASE_METHOD(Setup, "ledger: a run on meta is written like a real one", "[ledger]") {
  std::string real, meta;
  {
    const Ledger ledger;
    small_step(kReference);
    real = ledger.text();
  }
  const Ledger ledger;
  small_step(kMeta);
  meta = ledger.text();
  CHECK(real == meta);
  CHECK_THAT(meta, Contains("linear.forward  contraction  forward  blocks[1].mlp  f32  (2, 3) (4, "
                            "3) (2, 4)  48  72  32\n"));
  for (const Entry& e : ledger.entries()) CHECK(e.seconds == 0);
}

TEST_CASE_METHOD(Setup, "ledger: the innermost one listens, and it changes no bits", "[ledger]") {
  const Tensor x = from_host<float>({0.1F, 0.7F}, {2}, kReference), w = ones({2});
  const auto before = to_host<float>(rms_norm(x, w));
  const Ledger outer;
  rms_norm(x, w);
  {
    Ledger inner;
    CHECK(to_host<float>(rms_norm(x, w)) == before);
    CHECK(inner.entries().size() == 1);
    inner.clear();
    CHECK(inner.entries().empty());
  }
  rms_norm(x, w);
  CHECK(outer.entries().size() == 2);
}

TEST_CASE_METHOD(Setup, "ledger: says when the reference loops stood in for a missing kernel",
                 "[ledger]") {
  using Call = ops::RMSNorm::Forward;
  auto& kernel = kernels<Call>[kCPU.kind][static_cast<size_t>(DType::f64)];
  const auto saved = std::exchange(kernel, nullptr);
  const Ledger ledger;
  rms_norm(full({2, 2}, 1, DType::f64, kCPU), full({2}, 1, DType::f64, kCPU));
  kernel = saved;
  REQUIRE(ledger.entries().size() == 1);
  CHECK(ledger.entries()[0].fallback);
  CHECK_THAT(ledger.text(true), Contains("reference loops stood in"));
  CHECK_THAT(ledger.csv(), Contains(",\"\",1\n"));
}

TEST_CASE_METHOD(Setup, "ledger: a call that fails is not listed", "[ledger][error]") {
  const Ledger ledger;
  CHECK_THROWS_AS(rms_norm(ones({2, 3}).transpose(0, 1), ones({2})), Error);
  CHECK(ledger.entries().empty());
}

TEST_CASE_METHOD(Setup, "ledger: as comma-separated values and as JSON", "[ledger]") {
  const Ledger ledger;
  {
    const ModuleScope scope("a \"quoted\" \\ name");
    rms_norm(ones({1, 2}, kMeta), ones({2}, kMeta));
  }
  CHECK(ledger.csv() ==
        "op,kind,phase,module,dtype,shapes,flops,bytes_read,bytes_written,model_flops_full,"
        "model_flops_causal,device,seconds,provider,fallback\n"
        "\"rms_norm.forward\",\"normalization\",\"forward\",\"a \"\"quoted\"\" \\ "
        "name\",\"f32\",\"(1, 2) (2) (1, 2) (1)\","
        "12,16,12,0,0,\"meta\",0,\"\",0\n");
  CHECK(ledger.json() ==
        "[\n{\"op\": \"rms_norm.forward\", \"kind\": \"normalization\", \"phase\": \"forward\", "
        "\"module\": \"a \\\"quoted\\\" \\\\ name\", \"dtype\": \"f32\", \"shapes\": \"(1, 2) (2) "
        "(1, 2) (1)\", \"flops\": 12, "
        "\"bytes_read\": 16, \"bytes_written\": 12, \"model_flops_full\": 0, "
        "\"model_flops_causal\": 0, \"device\": \"meta\", "
        "\"seconds\": 0, \"provider\": \"\", \"fallback\": false}\n]\n");
  const Ledger empty_one;
  CHECK(empty_one.json() == "[\n]\n");
}

TEST_CASE("module scope: paths are built from names and indices, and end with the scope",
          "[ledger]") {
  CHECK(std::string(recorder().module).empty());
  {
    const ModuleScope decoder("decoder");
    for (int i = 0; i < 2; ++i) {
      const ModuleScope block("blocks", i);
      CHECK(std::string(recorder().module) == "decoder.blocks[" + std::to_string(i) + "]");
    }
    CHECK(to_text(in_module()) == " in decoder");
  }
  CHECK(to_text(in_module()).empty());
}

TEST_CASE("module scope: a name may be built in a buffer that is used again", "[ledger]") {
  char name[8] = "first";
  const char* first = nullptr;
  {
    const ModuleScope scope(name);
    first = recorder().module;
    CHECK(std::string(first) == "first");
  }
  std::snprintf(name, sizeof name, "second");
  const ModuleScope scope(name);
  CHECK(std::string(recorder().module) == "second");
  CHECK(std::string(first) == "first");
  CHECK(intern("second") == recorder().module);
}

TEST_CASE("phase: is set while in scope", "[ledger]") {
  CHECK(recorder().phase == Phase::forward);
  {
    const PhaseScope scope(Phase::optimizer);
    CHECK(to_text(recorder().phase) == "optimizer");
  }
  CHECK(recorder().phase == Phase::forward);
}
