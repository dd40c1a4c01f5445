#pragma once
#include <cstdint>

#include "backends/cpu/gemm_args.h"

namespace tally::cpu {

struct IsaTable;
template <class T>
struct GemmKernels;

/// C = alpha op(A) op(B) + beta C (+ bias), row-major: op(A) (m, k), op(B) (k, n), C (m, n).
/// beta is 0 (C is written and never read) or 1. Shared out over the thread pool; the result has
/// the same bits for any number of threads. k may be 0. Throws Error on sizes or leading
/// dimensions that do not fit.
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

/// Who computes a product: our packed kernels, or OpenBLAS.
enum class GemmProvider : uint8_t { own, openblas };

/// The provider that gemm uses; the environment variable TALLY_GEMM (own, openblas) forces one,
/// any other value is an Error. Read once.
GemmProvider gemm_provider();
/// What TALLY_GEMM=`text` selects; empty selects the default.
GemmProvider parse_gemm_provider(const char* text);
/// Its name for the ledger and for `doctor`: "own avx512", "openblas SkylakeX".
const char* gemm_provider_name();
/// The same for products of bf16 by pairs: "own avx512_bf16".
const char* bf16_provider_name();

/// The two providers by name, for tests and benchmarks.
template <class T>
void gemm_own(const IsaTable& table, const Gemm<T>& g);
template <class T>
void gemm_openblas(const Gemm<T>& g);
/// gemm_own by given kernels, whatever they hold where a float is (bf16_kernels.h).
void gemm_packed(const GemmKernels<float>& kernels, const Gemm<float>& g);

/// The set of kernels OpenBLAS chose for this CPU ("SkylakeX"); an old one it does not know well
/// gets "Prescott" (SSE3) kernels.
const char* openblas_core_name();

}  // namespace tally::cpu
