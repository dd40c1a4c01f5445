#pragma once
#include <cstdint>

namespace tally::cpu {

/// One product C = alpha op(A) op(B) + beta C (+ bias), all row-major.
/// op(A) is (m, k), op(B) is (k, n), C is (m, n). A leading dimension is the distance between rows
/// as stored: A is stored (m, k), or (k, m) when trans_a; B is stored (k, n), or (n, k).
/// A and B are of T, C of R.
template <class T, class R = T>
struct Gemm {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  const T* b = nullptr;
  int64_t ldb = 0;
  R beta = 0;  ///< 0 (C is written, never read) or 1 (C is added to)
  R* c = nullptr;
  int64_t ldc = 0;
  R alpha = 1;
  const R* bias = nullptr;  ///< (n), added once to every row of C
};

/// A step of a product: rows [i0, i1), columns [j0, j1), terms [p0, p0 + depth) of the sum.
struct GemmBlock {
  int64_t i0, i1, j0, j1, p0, depth;
};

/// The sum over k is cut into nearly equal blocks of at most kGemmDepth: a panel of that depth and
/// a tile of columns fills a first-level cache. The cut decides the order of addition, so it
/// depends on k alone.
inline constexpr int64_t kGemmDepth = 384;
constexpr int64_t gemm_depth(int64_t k) {
  const int64_t blocks = (k + kGemmDepth - 1) / kGemmDepth;
  return (k + blocks - 1) / blocks;
}
/// Rows of A that are packed together, at most.
inline constexpr int64_t kGemmGroupRows = 112;
/// Every tile width divides this.
inline constexpr int64_t kGemmColumns = 32;

}  // namespace tally::cpu
