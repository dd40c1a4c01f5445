#pragma once
// Activations and gates over the elements of a row. Arguments are kept where no infinity meets a
// zero, as in core/ops/activation_functions.h.
#include "backends/cpu/isa.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

struct Pair {
  F32 value, slope;
};
[[gnu::always_inline]] inline F32 clamped(F32 x, float low, float high) {
  return min(broadcast(high), max(broadcast(low), x));
}

struct IdentityUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return x; }
  [[gnu::always_inline]] static Pair pair(F32 x) { return {x, broadcast(1.0f)}; }
};
struct ReluUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return select(x < 0.0f, F32{}, x); }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    return {value(x), select(x > 0.0f, broadcast(1.0f), F32{})};
  }
};
struct SquaredReluUnit {
  [[gnu::always_inline]] static F32 value(F32 x) {
    const F32 r = ReluUnit::value(x);
    return r * r;
  }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 r = ReluUnit::value(x);
    return {r * r, r + r};
  }
};
struct GeluUnit {
  [[gnu::always_inline]] static F32 value(F32 x) {
    return max(broadcast(-40.0f), x) * normal_cdf(x);
  }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 cdf = normal_cdf(x), near = clamped(x, -40.0f, 40.0f);
    const F32 density = exp(near * near * -0.5f) * 0.3989422804f;
    return {max(broadcast(-40.0f), x) * cdf, fma(near, density, cdf)};
  }
};
struct GeluTanhUnit {  // 0.5 (1 + tanh u) is sigmoid(2 u)
  static constexpr float kTwo = 1.5957691216f, kCube = 0.044715f;
  [[gnu::always_inline]] static F32 argument(F32 near) {
    return near * fma(near * near, broadcast(kTwo * kCube), broadcast(kTwo));
  }
  [[gnu::always_inline]] static F32 value(F32 x) {
    return max(broadcast(-12.0f), x) * sigmoid(argument(clamped(x, -12.0f, 12.0f)));
  }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 near = clamped(x, -12.0f, 12.0f), s = sigmoid(argument(near));
    const F32 slope_of_argument = fma(near * near, broadcast(3 * kTwo * kCube), broadcast(kTwo));
    return {max(broadcast(-12.0f), x) * s, fma(near * s * (1.0f - s), slope_of_argument, s)};
  }
};
struct SiluUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return silu(x); }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 s = sigmoid(x), near = max(broadcast(-150.0f), x),
              upper = min(broadcast(150.0f), near);
    // Far to the left e^x is too small to hold, x e^x and its slope (1 + x) e^x are not.
    const F32 low = silu(x), far = low * (1.0f + 1.0f / min(broadcast(-1.0f), x));
    const auto left = x < -80.0f;
    return {select(left, low, near * s), select(left, far, fma(upper * s, 1.0f - s, s))};
  }
};
struct SigmoidUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return sigmoid(x); }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 e = exp(-abs(x)), d = 1.0f + e;  // s (1 - s) without taking s from 1
    return {sigmoid(x), e / (d * d)};
  }
};

/// Calls f with the unit that a number names.
template <class F>
inline void with_unit(Unit unit, F f) {
  switch (unit) {
    case Unit::identity:
      return f(IdentityUnit{});
    case Unit::relu:
      return f(ReluUnit{});
    case Unit::squared_relu:
      return f(SquaredReluUnit{});
    case Unit::gelu:
      return f(GeluUnit{});
    case Unit::gelu_tanh:
      return f(GeluTanhUnit{});
    case Unit::silu:
      return f(SiluUnit{});
    case Unit::sigmoid:
      return f(SigmoidUnit{});
  }
}

inline void activation_forward(Unit unit, int64_t n, const float* x, float* y, bool add) {
  with_unit(unit, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      put(y + i, u.value(load_some(x + i, lanes)), lanes, add);
    });
  });
}

inline void activation_backward(Unit unit, int64_t n, const float* dy, const float* x, float* dx,
                                bool add) {
  with_unit(unit, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      put(dx + i, load_some(dy + i, lanes) * u.pair(load_some(x + i, lanes)).slope, lanes, add);
    });
  });
}

inline void gate_forward(Unit unit, int64_t n, const float* a, const float* b, float* y, bool add) {
  with_unit(unit, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      put(y + i, u.value(load_some(a + i, lanes)) * load_some(b + i, lanes), lanes, add);
    });
  });
}

/// da or db may be null.
inline void gate_backward(Unit unit, int64_t n, const float* dy, const float* a, const float* b,
                          float* da, float* db, bool add_a, bool add_b) {
  with_unit(unit, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      const F32 g = load_some(dy + i, lanes);
      const Pair p = u.pair(load_some(a + i, lanes));
      if (da) put(da + i, g * load_some(b + i, lanes) * p.slope, lanes, add_a);
      if (db) put(db + i, g * p.value, lanes, add_b);
    });
  });
}

}  // namespace
}  // namespace tally::cpu
