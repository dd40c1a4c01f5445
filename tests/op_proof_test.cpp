// The proofs of single ops and layers, generic over the sample table: gradients, costs, the tape.
#include <map>
#include <set>

#include "autograd/functional.h"
#include "autograd/proof/taped_sample.h"
#include "core/ops/all.h"
#include "tests/samples.h"

using namespace tally;

namespace {

template <class... C>
std::vector<std::string> names_of(TypeList<C...>) {
  return {C::name...};
}

// Equal but for the order of sums; an absent gradient is one of zeros.
bool near(const Tensor& a, const Tensor& b) {
  const auto x =
      a.defined() ? to_doubles(a) : std::vector<double>(b.defined() ? to_doubles(b).size() : 0);
  const auto y = b.defined() ? to_doubles(b) : std::vector<double>(x.size());
  double scale = 1e-300, apart = 0;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    scale = std::max({scale, std::fabs(x[i]), std::fabs(y[i])});
    apart = std::max(apart, std::fabs(x[i] - y[i]));
  }
  return x.size() == y.size() && apart <= 1e-11 * std::max(scale, 1.0);
}

template <class O>
void cost_of_accumulate(DType dtype, O op) {
  const Tensor x = make_input(normal({3, 5}, 1), dtype, kReference),
               y = make_input(normal({3, 5}, 2), dtype, kReference);
  counted_calls().clear();
  op(x, y);
  REQUIRE(counted_calls().size() == 1);
  CHECK(counted_calls()[0].declared == counted_calls()[0].counted);
}

}  // namespace

TEST_CASE("every op: the backward is the adjoint of the forward, by dual numbers", "[op]") {
  prove_all(prove_adjoint);
}

TEST_CASE("every op: the backward equals central differences in float64", "[op]") {
  prove_all(prove_by_differences);
}

TEST_CASE("every op: the declared cost is the counted cost", "[op]") { prove_all(prove_cost); }

TEST_CASE("every op: the tape gives the bits of the calls by hand", "[op]") {
  for (Device device : {kReference, kCPU}) {
    prove_all([&](const Sample& s) { return prove_tape(s, device, DType::f32); });
    prove_all([&](const Sample& s) { return prove_tape(s, device, DType::f64); });
    prove_all([&](const Sample& s) { return prove_tape(s, device, DType::bf16); });
  }
}

TEST_CASE("every op without a backward refuses, by its name, an input that needs a gradient",
          "[op]") {
  std::map<std::string, int64_t> refusals;
  prove_all([&](const Sample& s) {
    const ProofResult r = prove_refusal(s);
    CHECK(r.skipped != (!s.by_hand && s.op != "document_ids"));  // ids are integers
    if (!r.skipped) ++refusals[s.op];
    return r;
  });
  CHECK(refusals.size() >= 3);
}

TEST_CASE("the proof of refusals fails where a gradient is lost in silence", "[proof]") {
  set_up_proofs();
  Sample s;
  s.op = "doubled";
  s.name = "past the tape";
  s.inputs = {normal({3}, 1)};
  s.apply = [](const Sample::Tensors& in) -> Sample::Tensors {
    return {ops::Scale::forward(in[0], {2}, nullptr)};
  };
  CHECK_FALSE(prove_refusal(s).ok());
  CHECK(prove_refusal(s).note == "input 0 needs a gradient, is taken, and gets none");
  s.apply = [](const Sample::Tensors&) -> Sample::Tensors { fail("no"); };
  CHECK_FALSE(prove_refusal(s).ok());
}

TEST_CASE("every fused op and layer equals its composition from plain ops, value and gradients",
          "[op]") {
  size_t compared = 0;
  for (const Sample& s : all_samples()) {
    if (!s.composition) continue;
    const Sample plain = taped_sample(s.op, s.name, s.inputs, s.composition);
    const auto inputs = make_inputs(s, DType::f64, kReference);
    const SampleRun fused = run_sample(s, inputs);
    const SampleRun parts = run_sample(plain, inputs, {fused.upstream[0]});
    INFO(s.op << " '" << s.name << "'");
    CHECK(near(fused.outputs[0], parts.outputs[0]));
    for (size_t i = 0; i < inputs.size(); ++i) {
      INFO("gradient of input " << i);
      CHECK(near(fused.gradients[i], parts.gradients[i]));
    }
    ++compared;
  }
  CHECK(compared > 200);
}

TEST_CASE("the tape's own calls: the declared cost is the counted cost", "[op]") {
  set_up_proofs();
  for (DType dtype : {DType::counted, DType::counted_half}) {
    cost_of_accumulate(dtype,
                       [](const Tensor& x, const Tensor& y) { ops::Accumulate::into(x, y); });
    cost_of_accumulate(dtype, [](const Tensor& x, const Tensor& y) { ops::Accumulate::sum(x, y); });
  }
}

TEST_CASE("every call of every op runs in some sample", "[op]") {
  std::set<std::string> seen{"accumulate", "accumulate.sum"};  // above
  for (const Sample& s : all_samples()) {
    Ledger ledger;
    run_sample(s, make_inputs(s, DType::f32, kReference));
    for (const Entry& e : ledger.entries()) seen.insert(e.op);
  }
  for (const std::string& name : names_of(AllCalls{})) {
    INFO("the call " << name << " has no sample: add one to autograd/samples");
    CHECK(seen.count(name) == 1);
  }
}
