// The proofs of single ops and layers, generic over the sample table: gradients, costs, the tape.
#include <set>

#include "autograd/functional.h"
#include "core/ops/all.h"
#include "tests/samples.h"

using namespace tally;

namespace {

template <class... C>
std::vector<std::string> names_of(TypeList<C...>) {
  return {C::name...};
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
