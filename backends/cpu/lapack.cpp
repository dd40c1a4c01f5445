// Bases of symmetric matrices by OpenBLAS's LAPACK, in f64 for f32 as the loops are. LAPACK counts
// by columns: a symmetric matrix is its own transpose, and eigenvectors come out as rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/openblas.h"
#include "core/ops/basis.h"
#include "core/parallel.h"

extern "C" {
void dsyevd_(const char* jobz, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work,
             const int* lwork, int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau,
             double* work, const int* lwork, int* info);
}

namespace tally::cpu {
namespace {

// What a failed factorisation leaves, and one of numbers that are not finite: seen, not used.
void spoil(double* from, int64_t count) {
  std::fill(from, from + count, std::numeric_limits<double>::quiet_NaN());
}
bool all_finite(const double* from, int64_t count) {
  return std::all_of(from, from + count, [](double x) { return std::isfinite(x); });
}

template <class T>
void eigen_basis(const ops::EigenBasis::Call& c) {
  recorder().provider = "lapack";
  const int64_t n = c.n();
  if (n == 0) return;
  auto* m = reinterpret_cast<double*>(c.scratch);
  double *values = m + n * n, *work = values + n;
  const auto size = static_cast<int>(n), lwork = static_cast<int>(1 + 6 * n + 2 * n * n),
             liwork = static_cast<int>(3 + 5 * n);
  auto* iwork = reinterpret_cast<int*>(work + lwork);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      m[i * n + j] = j <= i ? static_cast<double>(c.a.row<T>(i)[j]) : 0.0;
  int info = all_finite(m, n * n) ? 0 : 1;
  if (info == 0) {
    const std::lock_guard lock(openblas_mutex());
    const FlushSubnormals flush;
    dsyevd_("V", "U", &size, m, &size, values, work, &lwork, iwork, &liwork, &info);
  }
  if (info != 0) spoil(m, n * n + n);
  for (int64_t j = 0; j < n; ++j) {  // LAPACK's smallest come first
    const int64_t from = n - 1 - j;
    c.values.put(c.values.at<T>(j), static_cast<T>(values[from]));
    for (int64_t i = 0; i < n; ++i) c.q.put(c.q.row<T>(i)[j], static_cast<T>(m[from * n + i]));
  }
}

template <class T>
void orthonormal_columns(const ops::OrthonormalColumns::Call& c) {
  recorder().provider = "lapack";
  const int64_t n = c.n();
  if (n == 0) return;
  auto* m = reinterpret_cast<double*>(c.scratch);
  double *tau = m + n * n, *work = tau + n;
  const auto size = static_cast<int>(n), lwork = static_cast<int>(64 * n);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = c.order.pointer<int64_t>()[j];
    for (int64_t i = 0; i < n; ++i) m[j * n + i] = static_cast<double>(c.p.row<T>(i)[from]);
  }
  int info = all_finite(m, n * n) ? 0 : 1, failed = 0;
  if (info == 0) {
    const std::lock_guard lock(openblas_mutex());
    const FlushSubnormals flush;
    dgeqrf_(&size, &size, m, &size, tau, work, &lwork, &failed);
    dorgqr_(&size, &size, &size, m, &size, tau, work, &lwork, &info);
  }
  if (info != 0 || failed != 0) spoil(m, n * n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) c.q.put(c.q.row<T>(i)[j], static_cast<T>(m[j * n + i]));
}

}  // namespace

void register_lapack() {
  constexpr auto f32 = static_cast<size_t>(DType::f32), f64 = static_cast<size_t>(DType::f64);
  kernels<ops::EigenBasis::Call>[kCPU.kind][f32] = eigen_basis<float>;
  kernels<ops::EigenBasis::Call>[kCPU.kind][f64] = eigen_basis<double>;
  kernels<ops::OrthonormalColumns::Call>[kCPU.kind][f32] = orthonormal_columns<float>;
  kernels<ops::OrthonormalColumns::Call>[kCPU.kind][f64] = orthonormal_columns<double>;
}

}  // namespace tally::cpu
