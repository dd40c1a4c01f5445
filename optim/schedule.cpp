#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tally::optim {
namespace {

constexpr std::string_view kSchedules[] = {"constant", "linear",     "cosine", "inverse_sqrt",
                                           "noam",     "multi_step", "wsd"};
constexpr std::string_view kDecays[] = {"linear", "one_minus_sqrt", "cosine"};
constexpr std::string_view kUnits[] = {"steps", "tokens"};

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }
double half_cosine(double x) { return 0.5 * (1 + std::cos(std::numbers::pi * x)); }

double noam(int64_t t, int64_t warmup, int64_t d_model) {
  const double s = static_cast<double>(t + 1), w = static_cast<double>(warmup);
  const double rising = warmup > 0 ? s * std::pow(w, -1.5) : INFINITY;
  return std::min(1 / std::sqrt(s), rising) / std::sqrt(static_cast<double>(d_model));
}

}  // namespace

std::span<const std::string_view> enum_names(Schedule) { return kSchedules; }
std::span<const std::string_view> enum_names(Decay) { return kDecays; }
std::span<const std::string_view> enum_names(ScheduleUnit) { return kUnits; }

// Every number of steps as the forward passes before that step: tokens, but for a factor.
LearningRate LearningRate::in_passes() const {
  const auto before = [&](int64_t step) { return by_tokens->before(step); };
  LearningRate r = *this;
  r.by_tokens.reset();
  r.first_ = before(1);
  r.warmup = before(warmup), r.total = before(total);
  r.decay_steps = r.total - before(total - decay_steps);
  for (int64_t& m : r.milestones) m = before(m);
  return r;
}

double LearningRate::at(int64_t t) const {
  if (by_tokens) return in_passes().at(by_tokens->before(t));
  if (schedule == Schedule::noam) return peak * noam(t, warmup, d_model);
  if (t < warmup) return peak * (warmup_from + (1 - warmup_from) * ratio(t, warmup));
  return peak * fraction(t);
}

double LearningRate::fraction(int64_t t) const {
  const auto between = [&](double from_one_to_zero) {
    return final_fraction + (1 - final_fraction) * from_one_to_zero;
  };
  const bool ended = t > total || (total <= warmup && !(t == warmup && total == warmup));
  const double done = total > warmup ? ratio(t - warmup, total - warmup) : 0;
  switch (schedule) {
    case Schedule::linear:
      return ended ? final_fraction : between(1 - done);
    case Schedule::cosine:
      return ended ? final_fraction : between(half_cosine(done));
    case Schedule::inverse_sqrt:
      return std::sqrt(ratio(std::max(warmup, first_), std::max(t, first_)));
    case Schedule::multi_step:
      return std::pow(milestone_factor, std::count_if(milestones.begin(), milestones.end(),
                                                      [t](int64_t m) { return t >= m; }));
    case Schedule::wsd:
      return stable_then_decay(t);
    default:
      return 1;
  }
}

double LearningRate::stable_then_decay(int64_t t) const {
  if (t >= total) return final_fraction;
  if (t < total - decay_steps) return 1;
  const double x = ratio(t - (total - decay_steps), decay_steps);
  const double left = decay == Decay::linear           ? 1 - x
                      : decay == Decay::one_minus_sqrt ? 1 - std::sqrt(x)
                                                       : half_cosine(x);
  return final_fraction + (1 - final_fraction) * left;
}

int64_t BatchRamp::at(int64_t t) const {
  if (t >= steps) return last;
  const int64_t b = first + (last - first) * t / steps;
  return b - b % first;
}

int64_t BatchRamp::before(int64_t t) const {
  int64_t sum = 0;
  for (int64_t i = 0; i < std::min(t, steps); ++i) sum += at(i);
  return sum + std::max<int64_t>(t - steps, 0) * last;
}

}  // namespace tally::optim
