#pragma once
// Reductions over a row, and over the rows of a matrix column by column; and the way back. Every
// element is read once, in the order in which it lies: bound by memory.
#include "backends/cpu/reduce_args.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/simd_math.h"

namespace tally::cpu {
namespace {

template <Fold F>
inline constexpr float kFoldStart = F == Fold::largest    ? -__builtin_inff()
                                    : F == Fold::smallest ? __builtin_inff()
                                                          : 0.0f;

/// What x adds to its group.
template <Fold F>
[[gnu::always_inline]] inline F32 fold_term(F32 x, [[maybe_unused]] F32 shift) {
  if constexpr (F == Fold::squares) return (x - shift) * (x - shift);
  if constexpr (F == Fold::exps) return exp(x - shift);
  if constexpr (F == Fold::matches) return select(x == shift, broadcast(1.0f), F32{});
  return x;
}
/// Where x is NaN; of vectors a mask.
template <class V>
[[gnu::always_inline]] inline auto is_nan(V x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}
/// Two parts of a group, vectors or numbers.
template <Fold F, class V>
[[gnu::always_inline]] inline V fold_join(V a, V b) {
  if constexpr (F == Fold::largest) return ((b > a) | is_nan(b)) ? b : a;
  if constexpr (F == Fold::smallest) return ((b < a) | is_nan(b)) ? b : a;
  return a + b;
}
template <Fold F>
[[gnu::always_inline]] inline float fold_lanes(F32 v) {
  if constexpr (kFoldStart<F> == 0.0f) return sum(v);
  float all = v[0];
  for (int i = 1; i < kLanes; ++i) all = fold_join<F>(all, v[i]);
  return all;
}
template <Fold F>
[[gnu::always_inline]] inline F32 only_row(F32 v, All) {
  return v;
}
template <Fold F>
[[gnu::always_inline]] inline F32 only_row(F32 v, int64_t n) {
  return select(iota() < static_cast<int32_t>(n), v, broadcast(kFoldStart<F>));
}

/// Four vectors at a time, so that no addition waits for the one before.
template <Fold F>
inline float fold_row_as(int64_t n, const float* x, float shift) {
  const F32 s = broadcast(shift);
  F32 all[4] = {broadcast(kFoldStart<F>), broadcast(kFoldStart<F>), broadcast(kFoldStart<F>),
                broadcast(kFoldStart<F>)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int v = 0; v < 4; ++v)
      all[v] = fold_join<F>(all[v], fold_term<F>(load(x + i + v * kLanes), s));
  each_vector(n - i, [&](int64_t j, auto lanes) {
    const F32 term = fold_term<F>(load_some(x + i + j, lanes), s);
    all[0] = fold_join<F>(all[0], only_row<F>(term, lanes));
  });
  return fold_lanes<F>(fold_join<F>(fold_join<F>(all[0], all[1]), fold_join<F>(all[2], all[3])));
}

/// out[j] joined with what rows of x make of column j; shift may be null (then it is 0).
template <Fold F>
inline void fold_rows_as(int64_t rows, int64_t cols, const float* x, int64_t stride,
                         const float* shift, float* out) {
  for (int64_t row = 0; row < rows; row += 4, x += 4 * stride) {
    const int64_t count = rows - row;
    each_vector(cols, [&](int64_t j, auto lanes) {
      const F32 s = shift ? load_some(shift + j, lanes) : F32{};
      const auto term = [&](int64_t r) {
        return fold_term<F>(load_some(x + r * stride + j, lanes), s);
      };
      F32 all = load_some(out + j, lanes);
      if (count >= 4) {
        const F32 first = fold_join<F>(term(0), term(1)), second = fold_join<F>(term(2), term(3));
        all = fold_join<F>(all, fold_join<F>(first, second));
      } else {
        for (int64_t r = 0; r < count; ++r) all = fold_join<F>(all, term(r));
      }
      store_some(out + j, all, lanes);
    });
  }
}

/// Calls f with the fold as a type.
template <class Function>
[[gnu::always_inline]] inline auto with_fold(Fold fold, Function f) {
  switch (fold) {
    case Fold::squares:
      return f.template operator()<Fold::squares>();
    case Fold::exps:
      return f.template operator()<Fold::exps>();
    case Fold::matches:
      return f.template operator()<Fold::matches>();
    case Fold::largest:
      return f.template operator()<Fold::largest>();
    case Fold::smallest:
      return f.template operator()<Fold::smallest>();
    default:
      return f.template operator()<Fold::sum>();
  }
}
inline float fold_row(Fold fold, int64_t n, const float* x, float shift) {
  return with_fold(fold, [&]<Fold F> { return fold_row_as<F>(n, x, shift); });
}
inline void fold_rows(Fold fold, int64_t rows, int64_t cols, const float* x, int64_t stride,
                      const float* shift, float* out) {
  with_fold(fold, [&]<Fold F> { fold_rows_as<F>(rows, cols, x, stride, shift, out); });
}

/// dx[i] (+)= what `spread` says. `step` 0: factor and shift are those of the row, one number
/// each; 1: of its elements. x is not read, and may be null, where the element plays no part.
template <Spread S, int Step>
inline void spread_row_as(int64_t n, const float* x, const float* factor, const float* shift,
                          float* dx, bool add) {
  each_vector(n, [&](int64_t i, auto lanes) {
    const auto own = [&](const float* p) {
      return Step == 0 ? broadcast(*p) : load_some(p + i, lanes);
    };
    F32 d = own(factor);
    if constexpr (S != Spread::same) {
      const F32 v = load_some(x + i, lanes), s = own(shift);
      if constexpr (S == Spread::linear) d = (v - s) * d;
      if constexpr (S == Spread::exp) d = d * exp(v - s);
      if constexpr (S == Spread::matches) d = select(v == s, d, F32{});
    }
    put(dx + i, d, lanes, add);
  });
}
template <Spread S>
inline void spread_as(int64_t n, const float* x, const float* factor, const float* shift, int step,
                      float* dx, bool add) {
  if (step == 0)
    spread_row_as<S, 0>(n, x, factor, shift, dx, add);
  else
    spread_row_as<S, 1>(n, x, factor, shift, dx, add);
}
inline void spread_row(Spread spread, int64_t n, const float* x, const float* factor,
                       const float* shift, int step, float* dx, bool add) {
  switch (spread) {
    case Spread::same:
      return spread_as<Spread::same>(n, x, factor, shift, step, dx, add);
    case Spread::linear:
      return spread_as<Spread::linear>(n, x, factor, shift, step, dx, add);
    case Spread::exp:
      return spread_as<Spread::exp>(n, x, factor, shift, step, dx, add);
    case Spread::matches:
      return spread_as<Spread::matches>(n, x, factor, shift, step, dx, add);
  }
}

}  // namespace
}  // namespace tally::cpu
