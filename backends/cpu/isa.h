#pragma once
#include <cstdint>

#include "backends/cpu/attention_args.h"
#include "backends/cpu/curve_args.h"
#include "backends/cpu/dropout_args.h"
#include "backends/cpu/few_rows_args.h"
#include "backends/cpu/gemm_args.h"
#include "backends/cpu/loss_args.h"
#include "backends/cpu/norm_args.h"
#include "backends/cpu/optimizer_args.h"
#include "backends/cpu/reduce_args.h"
#include "backends/cpu/rope_args.h"
#include "backends/cpu/softmax_args.h"

namespace tally::cpu {

/// The instruction sets that kernels are compiled for, in order: baseline is x86-64 (SSE2), avx2
/// means AVX2 with FMA, avx512 means AVX-512 F, BW, DQ and VL. features.h says what runs here.
enum class Isa : uint8_t { baseline, avx2, avx512 };

/// The functions of simd_math.h, by name, for the rows below.
enum class MathFunction : uint8_t { exp, log, tanh, erf, normal_cdf, sigmoid, silu };

/// The parts of a product, see gemm_kernels.h.
template <class T>
struct GemmKernels {
  void (*pack_a)(const Gemm<T>& g, int64_t i0, int64_t rows, int64_t p0, int64_t depth, T* to);
  void (*pack_b)(const Gemm<T>& g, int64_t j0, int64_t j1, int64_t p0, int64_t depth, T* to);
  void (*multiply)(const Gemm<T>& g, const GemmBlock& block, const GemmBlock& next,
                   const T* packed_a, const T* packed_b);
  int tile_rows;  ///< of a full tile
};

/// Products of bf16 by pairs (bf16_kernels.h).
struct Bf16Kernels {
  GemmKernels<float> gemm;  ///< a float holds two numbers that follow each other down k
  double (*chains)(int64_t rounds, float* sink);
  void (*interleave)(int64_t n, const uint16_t* even, const uint16_t* odd, uint32_t* to);
};

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

  /// The parts of a product (gemm_kernels.h); gemm.cpp puts them together.
  GemmKernels<float> gemm_f32;
  GemmKernels<double> gemm_f64;
  /// A few rows against rows of weights (few_rows_kernels.h).
  void (*few_rows)(const FewRows<float>& g);
  void (*few_rows_half)(const FewRows<uint16_t>& g);

  /// Rows of a normalization (norm_kernels.h), and sums over the rows of a matrix.
  void (*norm_forward)(const NormForward& a);
  void (*norm_backward)(const NormBackward& a);
  void (*column_sums)(int64_t rows, int64_t cols, const float* x, int64_t stride, float* out,
                      bool add);

  /// Some queries of one head (attention_kernels.h, attention_backward_kernels.h).
  void (*attention_forward)(const AttentionForwardArgs& a);
  void (*attention_backward)(const AttentionBackwardArgs& a);
  void (*attention_half)(const AttentionForwardArgsOf<uint16_t>& a);

  /// Numbers kept in bf16 (half_kernels.h).
  void (*widen)(int64_t n, const uint16_t* x, float* y);
  void (*narrow)(int64_t n, const float* x, uint16_t* y, bool add);

  /// elementwise_kernels.h
  void (*add)(int64_t n, const float* a, const float* b, float* y, bool add_to);
  void (*scale)(int64_t n, float factor, const float* x, float* y, bool add_to);

  /// dropout_kernels.h
  void (*dropout)(const DropoutRow& a);

  /// activation_kernels.h
  void (*activation_forward)(Unit unit, double p, int64_t n, const float* x, float* y, bool add);
  void (*activation_backward)(Unit unit, double p, int64_t n, const float* dy, const float* x,
                              float* dx, bool add);
  void (*gate_forward)(const GateShape& g, int64_t n, const float* a, const float* b, float* y,
                       bool add);
  void (*gate_backward)(const GateShape& g, int64_t n, const float* dy, const float* a,
                        const float* b, float* da, float* db, bool add_a, bool add_b);

  /// curve_kernels.h
  void (*soft_cap)(int64_t n, float cap, const float* dy, const float* x, float* y, bool add);
  void (*learned_swish)(const LearnedSwishRow& a);
  XieluSums (*xielu)(const XieluRow& a);

  /// optimizer_kernels.h
  void (*adamw)(int64_t n, const float* dw, float* w, float* m, float* v, const AdamWScalars& s);
  double (*square_sum_f64)(int64_t n, const float* x);

  /// Rows of logits (loss_kernels.h).
  LossSums (*loss_sums)(int64_t n, const float* x, float cap);
  void (*loss_gradient)(const LossGradient& a);
  int64_t (*loss_largest)(int64_t n, const float* x);

  /// One group of a reduction, some groups side by side, and the way back (reduce_kernels.h).
  float (*fold_row)(Fold fold, int64_t n, const float* x, float shift);
  void (*fold_rows)(Fold fold, int64_t rows, int64_t cols, const float* x, int64_t stride,
                    const float* shift, float* out);
  void (*spread_row)(Spread spread, int64_t n, const float* x, const float* factor,
                     const float* shift, int step, float* dx, bool add);

  /// One row (softmax_kernels.h).
  void (*softmax_forward)(const SoftmaxForward& a);
  void (*softmax_backward)(const SoftmaxBackward& a);

  /// One head (rope_kernels.h).
  void (*rope_turn)(const RopeTurn& a, const float* x, const float* cos_sin, float* y);
};

/// The table of the selected instruction set (features.h: TALLY_ISA forces one).
const IsaTable& isa();

/// The table of a given one, which must be supported (tests compare them).
const IsaTable& isa_table(Isa isa);

/// Where the CPU multiplies pairs of bf16 and kernels run with avx512; null elsewhere.
const Bf16Kernels* bf16_kernels();

}  // namespace tally::cpu
