#pragma once
// Elements side by side, one pass: bound by memory.
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

/// y (+)= a + b; y may be a or b.
inline void add(int64_t n, const float* a, const float* b, float* y, bool add_to) {
  each_vector(n, [&](int64_t i, auto lanes) {
    put(y + i, load_some(a + i, lanes) + load_some(b + i, lanes), lanes, add_to);
  });
}

/// y (+)= factor x; y may be x.
inline void scale(int64_t n, float factor, const float* x, float* y, bool add_to) {
  each_vector(n, [&](int64_t i, auto lanes) {
    put(y + i, factor * load_some(x + i, lanes), lanes, add_to);
  });
}

}  // namespace
}  // namespace tally::cpu
