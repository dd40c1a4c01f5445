// A backend of one's own: host memory under another name, one kernel, and the reference loops for
// all else, which the ledger says. Every sample of every op must equal the reference; exit code 1
// when one does not.
#include <cstdio>

#include "autograd/functional.h"
#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "core/host_backend.h"
#include "core/ops/elementwise.h"

using namespace tally;

namespace {

int64_t kernel_runs = 0;

// y = a + b of equal dense shapes in one loop; what else there is goes to the reference loops.
void add_kernel(const ops::Add::Forward& call) {
  ++kernel_runs;
  const bool plain = call.a.is_dense() && call.b.is_dense() && call.y.is_dense() &&
                     call.a.shape == call.y.shape && call.b.shape == call.y.shape;
  if (!plain) return call.reference<float>();
  const float *a = call.a.pointer<float>(), *b = call.b.pointer<float>();
  float* y = call.y.pointer<float>();
  for (int64_t i = 0; i < call.y.numel(); ++i) y[i] = a[i] + b[i];
}

}  // namespace

int main() {
  register_all();
  register_proof_kernels();
  const Device mine = register_backend(std::make_unique<HostBackend>("mine"));
  kernels<ops::Add::Forward>[mine.kind][static_cast<size_t>(DType::f32)] = add_kernel;

  int64_t samples = 0, failures = 0;
  for (const Sample& s : core_samples()) {
    const ProofResult r = prove_backend(s, mine, DType::f32);
    ++samples;
    if (r.ok()) continue;
    ++failures;
    std::printf("%s '%s': %s\n", r.op.c_str(), r.sample.c_str(), r.note.c_str());
  }
  std::printf(
      "%lld samples on the backend `mine`: %lld differ from the reference; its add ran %lld "
      "times\n",
      static_cast<long long>(samples), static_cast<long long>(failures),
      static_cast<long long>(kernel_runs));

  Ledger ledger;
  const Tensor x = full({2, 4}, 1, DType::f32, mine);
  rms_norm(add(x, x));
  std::printf("\nledger:\n%s", ledger.text(true).c_str());
  const bool told = !ledger.entries()[0].fallback && ledger.entries()[1].fallback;
  return failures == 0 && kernel_runs > 0 && told ? 0 : 1;
}
