#pragma once
// Products of bf16 by the instruction that multiplies pairs of them and adds both to a sum in f32, at
// up to twice the rate of multiply-adds in f32. Wherever the other kernels have a float, these have
// two numbers that follow each other down k: packing moves 32 bits and never looks at them.
//
// The instruction counts numbers below 1.2e-38 as 0 and has no other rounding than f32's.
#include <immintrin.h>

#include "backends/cpu/ceiling_kernels.h"
#include "backends/cpu/gemm_kernels.h"

namespace tally::cpu {
namespace {

/// An element of the panels: two numbers.
struct Pairs {
  using Columns = __m512bh;
  [[gnu::always_inline]] static Columns columns(const float* b) {
    return reinterpret_cast<Columns>(load(b));
  }
  [[gnu::always_inline]] static Columns row(const float* a) {
    int32_t pair;
    __builtin_memcpy(&pair, a, sizeof pair);
    return reinterpret_cast<Columns>(_mm512_set1_epi32(pair));
  }
  [[gnu::always_inline]] static F32 add(Columns a, Columns b, F32 sum) {
    return reinterpret_cast<F32>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), a, b));
  }
};

/// As fma_chains: floating point operations of `rounds`, with nothing outside registers.
inline double bf16_chains(int64_t rounds, float* sink) {
  constexpr int kSums = 24;
  F32 v[kSums];
  for (F32& sum : v) sum = broadcast(*sink);
  Pairs::Columns x = Pairs::row(sink);
  const Pairs::Columns y = x;
  for (int64_t r = 0; r < rounds; ++r) {
    asm("" : "+v"(x));  // or the compiler would exchange the loops
    for (F32& sum : v) sum = Pairs::add(x, y, sum);
  }
  F32 all{};
  for (const F32& one : v) all += one;
  *sink = sum(all);
  return static_cast<double>(rounds) * kSums * kLanes * 4;
}

/// to[i] = even[i] below odd[i], or below 0 where there is no odd row.
inline void interleave(int64_t n, const uint16_t* even, const uint16_t* odd, uint32_t* to) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = uint32_t{even[i]} | (odd == nullptr ? 0 : uint32_t{odd[i]} << 16);
}

}  // namespace
}  // namespace tally::cpu
