#pragma once
#include <cstdint>

#include "backends/cpu/isa.h"

namespace tally::cpu {

/// C = op(A) op(B) + beta C: op(A) (m, k) and op(B) (k, n) of bf16, C (m, n) of f32, as Gemm.
struct Bf16Gemm {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  const uint16_t* a = nullptr;
  int64_t lda = 0;
  const uint16_t* b = nullptr;
  int64_t ldb = 0;
  float beta = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  const float* bias = nullptr;
};

/// The product by pairs of terms. An operand whose rows do not run down k, or cannot be read two by
/// two, is copied in pairs first: scratch of the size of the operand. The same bits for any number of
/// threads, and for any number of rows.
void gemm_bf16(const Bf16Kernels& kernels, const Bf16Gemm& g);

}  // namespace tally::cpu
