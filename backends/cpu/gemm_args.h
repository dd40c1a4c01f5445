#pragma once
#include <cstdint>

namespace tally::cpu {

/// One product C = alpha op(A) op(B) + beta C (+ bias), all row-major.
/// op(A) is (m, k), op(B) is (k, n), C is (m, n); a leading dimension is the distance between
/// rows as stored: A is stored (m, k), or (k, m) when trans_a.
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

/// The part of a product that one thread computes at a time: rows [i0, i1), columns [j0, j1).
struct GemmBlock {
  int64_t i0, i1, j0, j1;
};

}  // namespace tally::cpu
