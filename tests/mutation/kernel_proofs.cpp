// Holds the cpu kernels of the named ops to the reference: exit status 1 when a proof fails. Linked
// with a mutant of a kernel.
#include <set>

#include "tests/large_samples.h"
#include "tests/mutation/report.h"
#include "tests/samples.h"

using namespace tally;

namespace {

bool holds(const Sample& s) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    if (!report("backend", prove_backend(s, kCPU, dtype))) return false;
  }
  return report("tape", prove_tape(s, kCPU, DType::f32));
}

}  // namespace

int main(int argc, char** argv) {
  set_up_proofs();
  const std::set<std::string> ops(argv + 1, argv + argc);
  int seen = 0;
  const int status = status_of([&] {
    for (const auto& list : {core_samples(), large_samples()}) {
      for (const Sample& s : list) {
        if (ops.count(s.op) == 0) continue;
        ++seen;
        if (!holds(s)) return 1;
      }
    }
    return 0;
  });
  if (status != 0 || seen > 0) return status;
  std::puts("no sample of these ops");
  return 2;
}
