#include <openblas_config.h>
// cblas.h needs openblas_config.h first.
#include <cblas.h>

#include <climits>

#include "backends/cpu/gemm.h"
#include "backends/cpu/openblas.h"
#include "core/error.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const Gemm<float>& g, float beta) {
  const auto i = [](int64_t v) { return static_cast<blasint>(v); };
  cblas_sgemm(CblasRowMajor, ta, tb, i(g.m), i(g.n), i(g.k), g.alpha, g.a, i(g.lda), g.b, i(g.ldb),
              beta, g.c, i(g.ldc));
}
void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const Gemm<double>& g, double beta) {
  const auto i = [](int64_t v) { return static_cast<blasint>(v); };
  cblas_dgemm(CblasRowMajor, ta, tb, i(g.m), i(g.n), i(g.k), g.alpha, g.a, i(g.lda), g.b, i(g.ldb),
              beta, g.c, i(g.ldc));
}

}  // namespace

std::mutex& openblas_mutex() {
  static std::mutex one_at_a_time;
  return one_at_a_time;
}

// On the calling thread: our own kernels are the provider that uses the pool.
template <class T>
void gemm_openblas(const Gemm<T>& g) {
  for (const int64_t size : {g.m, g.n, g.k, g.lda, g.ldb, g.ldc})
    check(size >= 0 && size <= INT_MAX, "gemm: openblas takes sizes below 2^31; got ", size,
          "; set TALLY_GEMM=own");
  if (g.m == 0 || g.n == 0) return;
  const std::lock_guard lock(openblas_mutex());
  const FlushSubnormals flush;
  // beta 0 must not read C: not left to the library, which has got it wrong in the past.
  if (g.beta == 0)
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] = 0;
  if (g.k > 0)
    call(g.trans_a ? CblasTrans : CblasNoTrans, g.trans_b ? CblasTrans : CblasNoTrans, g, T{1});
  if (g.bias == nullptr) return;
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] += g.bias[j];
}
template void gemm_openblas(const Gemm<float>&);
template void gemm_openblas(const Gemm<double>&);

const char* openblas_core_name() { return openblas_get_corename(); }

}  // namespace tally::cpu
