// Holds the cpu kernels of the named ops to the reference: exit status 1 when a proof fails. Linked
// with a mutant of a kernel.
#include <map>

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
  std::map<std::string, int> seen;
  for (int i = 1; i < argc; ++i) seen[argv[i]] = 0;
  return status_of([&] {
    for (const auto& list : {core_samples(), large_samples()}) {
      for (const Sample& s : list) {
        const auto op = seen.find(s.op);
        if (op == seen.end()) continue;
        ++op->second;
        if (!holds(s)) return 1;
      }
    }
    for (const auto& [op, count] : seen) {
      if (count > 0) continue;
      std::printf("no sample of %s\n", op.c_str());
      return 2;
    }
    return 0;
  });
}
