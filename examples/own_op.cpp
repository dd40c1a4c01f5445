// An op of one's own (examples/softsign.h), proven with the tools that prove the library's: adjoint
// on dual numbers, central differences, counted cost, tape, account on meta. Exit code 1 when a
// proof fails.
#include <cstdio>

#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "examples/softsign.h"

using namespace tally;

namespace {

bool report(const char* proof, const ProofResult& r) {
  std::printf("%-22s %-10s error %8.2g, bound %8.2g%s%s\n", proof, r.ok() ? "holds" : "FAILS",
              r.error, r.bound, r.note.empty() ? "" : "; ", r.note.c_str());
  return r.ok();
}

bool prove(const Sample& s) {
  std::printf("%s, %s\n", s.op.c_str(), s.name.c_str());
  bool good = report("adjoint, dual numbers", prove_adjoint(s));
  good &= report("central differences", prove_by_differences(s));
  good &= report("counted cost", prove_cost(s));
  good &= report("tape", prove_tape(s, kCPU, DType::f32));
  good &= report("account on meta", prove_meta(s, kCPU, DType::f32));
  good &= report("threads", prove_threads(s, kCPU, DType::f32));
  return good;
}

}  // namespace

int main() {
  register_all();
  register_proof_kernels();
  // The loops serve every scalar: the numbers of a run and those of the proofs.
  register_reference(mine::Calls{});
  tally::register_proof_kernels(mine::Calls{});

  bool good = prove(sample<mine::Softsign>("5 x 7", {}, {normal({5, 7}, 1)}));
  good &= prove(sample<mine::Softsign>("no elements", {}, {normal({0, 3}, 2)}));

  Tensor x = full({2, 3}, -3, DType::f32, kCPU);
  x.requires_grad_();
  Ledger ledger;
  {
    Tape tape;
    tape.backward(apply<mine::Softsign>({}, x), full({2, 3}, 1, DType::f32, kCPU));
  }
  std::printf("\nledger of a pass on cpu, which has no kernel for it:\n%s",
              ledger.text(true).c_str());
  const double slope = x.grad().host<float>()[0];
  std::printf("slope at -3: %.6f\n", slope);
  good &= slope == 1.0 / 16;
  return good ? 0 : 1;
}
