#pragma once
// Activations and gates over the elements of a row. Arguments are kept where no infinity meets a
// zero, as in core/ops/activation_functions.h.
#include "backends/cpu/curve_kernels.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

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
    const F32 tail = normal_tail(abs(x), broadcast(kUp));
    return select(x < 0.0f, max(broadcast(-40.0f), x) * tail * kDown, x * (1.0f - tail * kDown));
  }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 near = clamped(x, -40.0f, 40.0f), s = near * near, low = fma(near, near, -s);
    const F32 tail = normal_tail(abs(x), broadcast(kUp)), right = 1.0f - tail * kDown;
    const F32 density = exp_parts(-0.5f * s, -0.5f * low, broadcast(kUp)) * 0.3989422804f;
    const auto left = x < 0.0f;
    return {select(left, near * tail * kDown, x * right),
            select(left, fma(near, density, tail) * kDown, fma(near * kDown, density, right))};
  }
};
/// sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): 0.5 (1 + tanh u).
struct GeluTanhUnit {
  static constexpr float kTwo = 0x1.988454p+0f, kTwoLow = -0x1.857936p-25f;
  static constexpr float kCube = 0x1.2444f2p-4f, kCubeLow = 0x1.49b16ap-29f;
  [[gnu::always_inline]] static Shares shares(F32 x) {
    const F32 a = min(broadcast(12.0f), abs(x)), s = a * a, s_low = fma(a, a, -s);
    const F32 p = fma(s, broadcast(kCube), broadcast(kTwo));
    const F32 cubed = p - kTwo;
    F32 p_low = fma(s, broadcast(kCube), -cubed) + (kTwo - (p - cubed)) + kTwoLow;
    p_low = fma(s, broadcast(kCubeLow), fma(s_low, broadcast(kCube), p_low));
    const F32 z = a * p, z_low = fma(a, p_low, fma(a, p, -z));
    return shares_of(z, z_low);
  }
  [[gnu::always_inline]] static F32 value(F32 x) {
    const Shares of = shares(x);
    return select(x < 0.0f, max(broadcast(-12.0f), x) * of.small * kDown, x * of.big);
  }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const Shares of = shares(x);
    const F32 near = clamped(x, -12.0f, 12.0f);
    const F32 s = near * near, s_low = fma(near, near, -s);
    constexpr double kSlope = 3 * 0.07135481627260025;  // 3 2 sqrt(2 / pi) 0.044715
    constexpr auto kThree = static_cast<float>(kSlope);
    constexpr auto kThreeLow = static_cast<float>(kSlope - double{kThree});
    const F32 low = fma(s_low, broadcast(kThree), fma(s, broadcast(kThreeLow), broadcast(kTwoLow)));
    const F32 f = fma(s, broadcast(kThree), broadcast(kTwo)), cubed = f - kTwo;
    const F32 f_low = fma(s, broadcast(kThree), -cubed) + (kTwo - (f - cubed)) + low;
    const F32 t = near * f, t_low = fma(near, f_low, fma(near, f, -t));
    const F32 big_t = fma(t, of.big, t_low * of.big);
    const auto left = x < 0.0f;
    return {select(left, near * of.small * kDown, x * of.big), slope_of(of, big_t, left)};
  }
};
struct SiluUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return silu(x); }
  [[gnu::always_inline]] static Pair pair(F32 x) { return SwishUnit::pair_at(x, x, F32{}); }
};
struct SigmoidUnit {
  [[gnu::always_inline]] static F32 value(F32 x) { return sigmoid(x); }
  [[gnu::always_inline]] static Pair pair(F32 x) {
    const F32 e = exp(-abs(x));  // s (1 - s) without taking s from 1
    const TwoFloats t = reciprocal_of_one_more(e, F32{});
    const F32 big = t.value + t.low;
    return {sigmoid(x), e * big * big};
  }
};

/// Calls f with the unit that a number names; p is its parameter where it has one.
template <class F>
inline void with_unit(Unit unit, double p, F f) {
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
    case Unit::swish:
      return f(SwishUnit{p});
    case Unit::sigmoid:
      return f(SigmoidUnit{});
    case Unit::tanh:
      return f(TanhUnit{});
    case Unit::elu:
      return f(EluUnit{static_cast<float>(p), 1});
    case Unit::selu:
      return f(EluUnit{1.6732632423543772f, 1.0507009873554805f});
    case Unit::softplus:
      return f(SoftplusUnit{});
  }
}

inline void activation_forward(Unit unit, double p, int64_t n, const float* x, float* y, bool add) {
  with_unit(unit, p, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      put(y + i, u.value(load_some(x + i, lanes)), lanes, add);
    });
  });
}

inline void activation_backward(Unit unit, double p, int64_t n, const float* dy, const float* x,
                                float* dx, bool add) {
  with_unit(unit, p, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      put(dx + i, load_some(dy + i, lanes) * u.pair(load_some(x + i, lanes)).slope, lanes, add);
    });
  });
}

[[gnu::always_inline]] inline F32 up_of(const GateShape& g, F32 b) {
  return clamped(b, -g.limit, g.limit) + g.offset;
}

inline void gate_forward(const GateShape& g, int64_t n, const float* a, const float* b, float* y,
                         bool add) {
  with_unit(g.unit, g.parameter, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      const F32 gate = min(broadcast(g.limit), load_some(a + i, lanes));
      put(y + i, u.value(gate) * up_of(g, load_some(b + i, lanes)), lanes, add);
    });
  });
}

/// da or db may be null. What a limit cut has no gradient.
inline void gate_backward(const GateShape& g, int64_t n, const float* dy, const float* a,
                          const float* b, float* da, float* db, bool add_a, bool add_b) {
  with_unit(g.unit, g.parameter, [=](auto u) {
    each_vector(n, [=](int64_t i, auto lanes) {
      const F32 d = load_some(dy + i, lanes), x = load_some(a + i, lanes),
                up = load_some(b + i, lanes);
      const Pair p = u.pair(min(broadcast(g.limit), x));
      if (da) put(da + i, select(x > g.limit, F32{}, d * up_of(g, up) * p.slope), lanes, add_a);
      if (db) put(db + i, select(abs(up) > g.limit, F32{}, d * p.value), lanes, add_b);
    });
  });
}

}  // namespace
}  // namespace tally::cpu
