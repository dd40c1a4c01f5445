#include "core/ops/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace tally {
namespace {

using Scaled = RopeScalingKind;
constexpr double kTurn = 2 * std::numbers::pi;

void check_factor(const RopeScaling& s) {
  check(std::isfinite(s.factor) && s.factor >= 1,
        "rope_turns: the factor of a scaling must be a finite number of at least 1; got ",
        s.factor);
}
void check_original(const RopeScaling& s) {
  check(s.original_context >= 1,
        "rope_turns: this scaling needs the original context, at least 1 token; got ",
        s.original_context);
}

/// base^(2i/dim) of every pair, in the arithmetic T: the period is 2 pi times this.
template <class T>
std::vector<T> periods(int64_t dim, double base) {
  std::vector<T> p(static_cast<size_t>(dim / 2));
  for (size_t i = 0; i < p.size(); ++i) {
    const T exponent = static_cast<T>(2 * i) / static_cast<T>(dim);
    p[i] = static_cast<T>(std::pow(base, static_cast<double>(exponent)));
  }
  return p;
}

/// The base whose slowest pair turns `factor` times slower, while the fastest stays.
double ntk_base(int64_t dim, double base, double factor) {
  check(dim > 2, "rope_turns: NTK scaling needs more than one pair; got a rotary size of ", dim);
  return base * std::pow(factor, static_cast<double>(dim) / static_cast<double>(dim - 2));
}

double dynamic_base(int64_t dim, double base, const RopeScaling& s, int64_t length) {
  check_factor(s);
  check_original(s);
  const double original = static_cast<double>(s.original_context);
  const double now = std::max(static_cast<double>(length), original);
  return ntk_base(dim, base, s.factor * now / original - (s.factor - 1));
}

/// The pair that makes `turns` turns within the original context, as a real number.
double pair_of_turns(double turns, int64_t dim, double base, const RopeScaling& s) {
  return static_cast<double>(dim) *
         std::log(static_cast<double>(s.original_context) / (turns * kTurn)) / (2 * std::log(base));
}

template <class T>
void yarn(std::vector<T>& f, const std::vector<T>& period, int64_t dim, double base,
          const RopeScaling& s) {
  check_factor(s);
  check_original(s);
  check(s.beta_fast > s.beta_slow && s.beta_slow > 0 && base > 1,
        "rope_turns: YaRN needs beta_fast > beta_slow > 0 and a base above 1; got ", s.beta_fast,
        ", ", s.beta_slow, " and ", base);
  double low = pair_of_turns(s.beta_fast, dim, base, s),
         high = pair_of_turns(s.beta_slow, dim, base, s);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;  // the published code's step in place of a ramp without a width
  for (size_t i = 0; i < f.size(); ++i) {
    const T ramp = std::clamp<T>(
        (static_cast<T>(i) - static_cast<T>(low)) / static_cast<T>(high - low), T(0), T(1));
    const T stretched = T(1) / (static_cast<T>(s.factor) * period[i]), kept = T(1) - ramp;
    f[i] = stretched * (T(1) - kept) + f[i] * kept;
  }
}

template <class T>
void llama3(std::vector<T>& f, const RopeScaling& s) {
  check_factor(s);
  check_original(s);
  check(s.high_frequency > s.low_frequency && s.low_frequency > 0,
        "rope_turns: llama3 scaling needs high_frequency > low_frequency > 0; got ",
        s.high_frequency, " and ", s.low_frequency);
  const double original = static_cast<double>(s.original_context);
  for (T& x : f) {
    const T wave = static_cast<T>(kTurn) / x;
    if (wave < static_cast<T>(original / s.high_frequency)) continue;
    const T slow = x / static_cast<T>(s.factor);
    if (wave > static_cast<T>(original / s.low_frequency)) {
      x = slow;
      continue;
    }
    const T smooth = (static_cast<T>(original) / wave - static_cast<T>(s.low_frequency)) /
                     static_cast<T>(s.high_frequency - s.low_frequency);
    x = (T(1) - smooth) * slow + smooth * x;
  }
}

template <class T>
void longrope(std::vector<T>& f, const std::vector<T>& period, const RopeScaling& s,
              int64_t length) {
  check_original(s);
  const auto& factors = length > s.original_context ? s.long_factors : s.short_factors;
  for (const auto* list : {&s.short_factors, &s.long_factors}) {
    check(list->size() == f.size(),
          "rope_turns: longrope needs a short and a long factor for each ", "of the ", f.size(),
          " pairs; got ", list->size());
    for (const double x : *list)
      check(std::isfinite(x) && x > 0,
            "rope_turns: factors of longrope must be finite numbers above 0; got ", x);
  }
  for (size_t i = 0; i < f.size(); ++i) f[i] = T(1) / (static_cast<T>(factors[i]) * period[i]);
}

template <class T>
std::vector<double> frequencies(int64_t dim, double base, const RopeScaling& s, int64_t length) {
  if (s.kind == Scaled::ntk) {
    check_factor(s);
    base = ntk_base(dim, base, s.factor);
  }
  if (s.kind == Scaled::dynamic_ntk) base = dynamic_base(dim, base, s, length);
  const std::vector<T> period = periods<T>(dim, base);
  std::vector<T> f;
  for (const T p : period) f.push_back(T(1) / p);
  if (s.kind == Scaled::linear) {
    check_factor(s);
    for (T& x : f) x /= static_cast<T>(s.factor);
  }
  if (s.kind == Scaled::yarn) yarn(f, period, dim, base, s);
  if (s.kind == Scaled::llama3) llama3(f, s);
  if (s.kind == Scaled::longrope) longrope(f, period, s, length);
  if (s.kind == Scaled::proportional) {
    check(s.fraction > 0 && s.fraction <= 1,
          "rope_turns: the fraction of the pairs that turn must lie in (0, 1]; got ", s.fraction);
    const auto turning = static_cast<size_t>(s.fraction * static_cast<double>(dim) / 2);
    for (size_t i = turning; i < f.size(); ++i) f[i] = T(0);
    for (T& x : f) x /= static_cast<T>(s.factor);
  }
  return {f.begin(), f.end()};
}

/// 0.1 weight ln(factor) + 1, YaRN's eq. 22 for weight 1.
double magnitude(double factor, double weight) {
  return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1;
}

double attention_factor(const RopeScaling& s) {
  if (s.kind != Scaled::yarn && s.kind != Scaled::longrope) return 1;
  if (s.attention_factor != 0) return s.attention_factor;
  if (s.kind == Scaled::longrope) {
    if (s.factor <= 1) return 1;
    return std::sqrt(1 + std::log(s.factor) / std::log(static_cast<double>(s.original_context)));
  }
  if (s.mscale != 0 && s.mscale_all_dim != 0)
    return magnitude(s.factor, s.mscale) / magnitude(s.factor, s.mscale_all_dim);
  return magnitude(s.factor, 1);
}

}  // namespace

RopeTurns rope_turns(int64_t dim, double base, const RopeScaling& s, int64_t length,
                     RopeArithmetic arithmetic) {
  check(dim >= 2 && dim % 2 == 0, "rope_turns: the rotary size must be even and at least 2; got ",
        dim);
  check(std::isfinite(base) && base > 0,
        "rope_turns: the base must be a finite number above 0; got ", base);
  RopeTurns turns;
  turns.frequencies = arithmetic == RopeArithmetic::float64
                          ? frequencies<double>(dim, base, s, length)
                          : frequencies<float>(dim, base, s, length);
  turns.attention_factor = attention_factor(s);
  return turns;
}

double rope_softmax_scale(const RopeScaling& s) {
  if (s.kind != Scaled::yarn || s.mscale_all_dim == 0) return 1;
  const double m = magnitude(s.factor, s.mscale_all_dim);
  return m * m;
}

}  // namespace tally
