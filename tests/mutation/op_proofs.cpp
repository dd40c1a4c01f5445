// Proves the ops of one file, compiled with a mutant of it: exit status 1 when a proof fails.
// `mutant_op.h` is what mutants.py says of the file: MutantCalls and mutant_samples().
#include "backends/register_all.h"
#include "mutant_op.h"
#include "tests/mutation/report.h"

using namespace tally;

namespace {

// The values of a fused op are those of its composition.
bool equals_composition(const Sample& s) {
  if (!s.composition) return true;
  const auto inputs = make_inputs(s, DType::f64, kReference);
  const auto fused = to_doubles(s.apply(inputs)[0]), plain = to_doubles(s.composition(inputs)[0]);
  for (size_t i = 0; i < fused.size(); ++i) {
    if (std::fabs(fused[i] - plain[i]) <= 1e-12 * std::fabs(plain[i])) continue;
    std::printf("composition of %s '%s'\n", s.op.c_str(), s.name.c_str());
    return false;
  }
  return true;
}

// The kernels of the cpu are not compiled with the mutant: they say what a consistent one hides, a
// value and its gradient that are wrong alike.
bool holds(const Sample& s) {
  return report("adjoint", prove_adjoint(s)) && report("differences", prove_by_differences(s)) &&
         report("cost", prove_cost(s)) && report("tape", prove_tape(s, kReference, DType::f32)) &&
         equals_composition(s) && report("backend", prove_backend(s, kCPU, DType::f32));
}

}  // namespace

int main() {
  register_all();
  register_reference(MutantCalls{});
  register_proof_kernels();
  register_proof_kernels(MutantCalls{});
  return status_of([] {
    for (const Sample& s : mutant_samples()) {
      if (!holds(s)) return 1;
    }
    return 0;
  });
}
