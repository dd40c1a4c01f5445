#pragma once
#include <cstdint>

namespace tally::cpu {

/// One product C = alpha op(A) op(B) + beta C (+ bias), all row-major.
/// op(A) is (m, k), op(B) is (k, n), C is (m, n). A leading dimension is the distance between rows
/// as stored: A is stored (m, k), or (k, m) when trans_a; B is stored (k, n), or (n, k).
template <class T>
struct Gemm {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  const T* b = nullptr;
  int64_t ldb = 0;
  T beta = 0;  ///< 0 (C is written, never read) or 1 (C is added to)
  T* c = nullptr;
  int64_t ldc = 0;
  T alpha = 1;
  const T* bias = nullptr;  ///< (n), added once to every row of C
};

/// The part of a product that one thread computes at a time, rows [i0, i1) and columns [j0, j1),
/// and what it does with the thread's packed copies of A and B.
struct GemmBlock {
  int64_t i0, i1, j0, j1;
  bool keep_a, keep_b;  ///< pack all of k at once, for the next blocks of this thread
  bool have_a, have_b;  ///< an earlier block of this thread has packed it
};

/// The sum over k is cut into equal blocks of at most kGemmDepth: a panel of that depth and a tile
/// of columns fills a first-level cache. The cut decides the order of addition, so it depends on k
/// alone.
inline constexpr int64_t kGemmDepth = 384;
constexpr int64_t gemm_depth(int64_t k) {
  const int64_t blocks = (k + kGemmDepth - 1) / kGemmDepth;
  return (k + blocks - 1) / blocks;
}
/// Rows of A that are packed together, at most.
inline constexpr int64_t kGemmGroupRows = 112;
/// Every tile width divides this.
inline constexpr int64_t kGemmColumns = 32;
/// Elements at the start of the scratch arena that hold packed A; packed B follows.
inline constexpr int64_t kPackedA = kGemmGroupRows * kGemmDepth + 1024;

}  // namespace tally::cpu
