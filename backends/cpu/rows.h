#pragma once
// Loops over the elements of a row, vector by vector; the tail runs the same code on fewer lanes.
#include "backends/cpu/simd.h"

namespace tally::cpu {
namespace {

/// "All lanes" where a number of lanes is asked for.
struct All {};
[[gnu::always_inline]] inline F32 load_some(const float* p, All) { return load(p); }
[[gnu::always_inline]] inline F32 load_some(const float* p, int64_t n) { return load_first(p, n); }
[[gnu::always_inline]] inline void store_some(float* p, F32 v, All) { store(p, v); }
[[gnu::always_inline]] inline void store_some(float* p, F32 v, int64_t n) { store_first(p, v, n); }

/// Calls f(i, lanes) for i = 0, kLanes, ... below n; `lanes` is All or, at the end, how many are
/// left.
template <class F>
[[gnu::always_inline]] inline void each_vector(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, All{});
  if (i < n) f(i, n - i);
}

/// Writes, or adds to what is there.
template <class Lanes>
[[gnu::always_inline]] inline void put(float* p, F32 v, Lanes lanes, bool add) {
  store_some(p, add ? load_some(p, lanes) + v : v, lanes);
}

}  // namespace
}  // namespace tally::cpu
