#pragma once
#include <cstdint>

#include "backends/cpu/gemm_args.h"
#include "backends/cpu/isa.h"

namespace tally::cpu {

/// A and B are the bits of bf16, C is f32.
using Bf16Gemm = Gemm<uint16_t, float>;

/// The product by pairs of terms. An operand whose rows do not run down k, or cannot be read two by
/// two, is copied in pairs first: scratch of the size of the operand. The same bits for any number of
/// threads, and for any number of rows.
void gemm_bf16(const Bf16Kernels& kernels, const Bf16Gemm& g);

}  // namespace tally::cpu
