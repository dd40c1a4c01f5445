#pragma once
#include <cstdint>

#include "backends/cpu/gemm_args.h"
#include "backends/cpu/norm_args.h"

namespace tally::cpu {

/// The instruction sets that kernels are compiled for, in order: baseline is x86-64 (SSE2), avx2
/// means AVX2 with FMA, avx512 means AVX-512 F, BW, DQ and VL. features.h says what runs here.
enum class Isa : uint8_t { baseline, avx2, avx512 };

/// The functions of simd_math.h, by name, for the rows below.
enum class MathFunction : uint8_t { exp, log, tanh, erf, normal_cdf, sigmoid, silu };

/// Every kernel that is compiled once per instruction set, as plain function pointers. Only
/// pointers, sizes, strides and plain structs cross this border: see backends/cpu/README.md for
/// how to add a row.
struct IsaTable {
  Isa isa;

  /// y[i] = f(x[i]) for i < n; y may be x.
  void (*map)(MathFunction f, int64_t n, const float* x, float* y);

  /// What ceilings.cpp times: multiply-adds in registers, reading, copying past the caches.
  double (*fma_chains)(int64_t rounds, float* sink);
  float (*read_all)(int64_t n, const float* x);
  void (*copy_all)(int64_t n, const float* x, float* y);

  /// One block of a product (gemm_kernels.h); `scratch` is the arena of the thread
  /// (core/parallel.h).
  void (*gemm_block_f32)(const Gemm<float>& g, const GemmBlock& block, float* scratch);
  void (*gemm_block_f64)(const Gemm<double>& g, const GemmBlock& block, double* scratch);

  /// Rows of a normalization (norm_kernels.h), and sums over the rows of a matrix.
  void (*norm_forward)(const NormForward& a);
  void (*norm_backward)(const NormBackward& a);
  void (*column_sums)(int64_t rows, int64_t cols, const float* x, int64_t stride, float* out,
                      bool add);

  /// elementwise_kernels.h
  void (*add)(int64_t n, const float* a, const float* b, float* y, bool add_to);
  void (*scale)(int64_t n, float factor, const float* x, float* y, bool add_to);
};

/// The table of the selected instruction set (features.h: TALLY_ISA forces one).
const IsaTable& isa();

/// The table of a given one, which must be supported (tests compare them).
const IsaTable& isa_table(Isa isa);

}  // namespace tally::cpu
