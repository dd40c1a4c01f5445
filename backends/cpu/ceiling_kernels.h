#pragma once
// Loops that do nothing but what the machine is best at: multiply-adds in registers, reading,
// copying. ceilings.cpp times them.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

/// Chains of multiply-adds that depend on nothing outside registers, enough of them to cover the
/// latency. Returns the floating point operations done; *sink keeps the compiler honest.
inline double fma_chains(int64_t rounds, float* sink) {
  constexpr int kPairs = kVectorBytes == 64 ? 12 : 6;
  F32 v[kPairs][2];
  for (int i = 0; i < kPairs; ++i)
    for (int j = 0; j < 2; ++j) v[i][j] = broadcast(*sink);
  F32 x = broadcast(*sink);
  const F32 y = x * 0.5f;
  for (int64_t r = 0; r < rounds; ++r) {
#if defined(__x86_64__)
    asm("" : "+x"(x));  // or the compiler would exchange the loops
#else
    asm("" : "+w"(x));
#endif
    for (int i = 0; i < kPairs; ++i)
      for (int j = 0; j < 2; ++j) v[i][j] = fma(v[i][j], x, y);
  }
  F32 all{};
  for (int i = 0; i < kPairs; ++i) all += v[i][0] + v[i][1];
  *sink = sum(all);
  return static_cast<double>(rounds) * kPairs * 2 * kLanes * 2;
}

/// Sum of n floats, n a multiple of 8 kLanes.
inline float read_all(int64_t n, const float* x) {
  F32 v[8];
  for (int i = 0; i < 8; ++i) v[i] = F32{};
  for (int64_t k = 0; k < n; k += 8 * kLanes)
    for (int i = 0; i < 8; ++i) v[i] += load(x + k + i * kLanes);
  F32 all = v[0];
  for (int i = 1; i < 8; ++i) all += v[i];
  return sum(all);
}

/// y = x past the caches; n a multiple of 2 kLanes, y aligned to 64 bytes.
inline void copy_all(int64_t n, const float* x, float* y) {
  for (int64_t k = 0; k < n; k += 2 * kLanes) {
    const F32 a = load(x + k), b = load(x + k + kLanes);
    stream(y + k, a);
    stream(y + k + kLanes, b);
  }
  stream_fence();
}

}  // namespace
}  // namespace tally::cpu
