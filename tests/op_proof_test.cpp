// The proofs, generic over the sample table: gradients, costs, the tape.
#include <catch2/catch.hpp>

#include "autograd/proof/proof.h"
#include "backends/register_all.h"

using namespace tally;

namespace {

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = [] {
    register_all();
    register_proof_kernels();
    return core_samples();
  }();
  return all;
}

template <class Prove>
void prove_all(Prove prove) {
  for (const Sample& s : samples()) {
    const ProofResult r = prove(s);
    INFO(r.op << " '" << r.sample << "': error " << r.error << ", bound " << r.bound << "; " << r.note);
    CHECK(r.ok());
  }
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
  }
  prove_all([](const Sample& s) { return prove_tape(s, kReference, DType::bf16); });
}

TEST_CASE("every op has a sample", "[op]") {
  REQUIRE(samples().size() > 10);
}
