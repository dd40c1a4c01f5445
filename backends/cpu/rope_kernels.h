#pragma once
#include "backends/cpu/rope_args.h"
#include "backends/cpu/rows.h"

namespace tally::cpu {
namespace {

/// cos_sin holds the cosines, then the sines, of the head's position.
inline void rope_turn(const RopeTurn& a, const float* x, const float* cos_sin, float* y) {
  const float *c = cos_sin, *s = cos_sin + a.half;
  if (a.interleaved) {
    for (int64_t i = 0; i < a.half; ++i) {
      const float x0 = x[2 * i], x1 = x[2 * i + 1], sine = a.sign * s[i];
      const float y0 = x0 * c[i] - x1 * sine, y1 = x1 * c[i] + x0 * sine;
      y[2 * i] = a.add ? y[2 * i] + y0 : y0;
      y[2 * i + 1] = a.add ? y[2 * i + 1] + y1 : y1;
    }
  } else {
    each_vector(a.half, [&](int64_t i, auto lanes) {
      const F32 cosine = load_some(c + i, lanes), sine = load_some(s + i, lanes) * a.sign;
      const F32 x0 = load_some(x + i, lanes), x1 = load_some(x + a.half + i, lanes);
      put(y + i, x0 * cosine - x1 * sine, lanes, a.add);
      put(y + a.half + i, x1 * cosine + x0 * sine, lanes, a.add);
    });
  }
  const int64_t turned = 2 * a.half;
  if (turned == a.size || (x == y && !a.add)) return;
  each_vector(a.size - turned, [&](int64_t i, auto lanes) {
    put(y + turned + i, load_some(x + turned + i, lanes), lanes, a.add);
  });
}

}  // namespace
}  // namespace tally::cpu
