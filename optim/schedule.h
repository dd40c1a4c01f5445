#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tally::optim {

/// What the learning rate does after the warm-up.
enum class Schedule : uint8_t { constant, linear, cosine, inverse_sqrt, noam, multi_step, wsd };
/// How the last phase of WSD falls: with x from 0 to 1, as 1 - x, 1 - sqrt(x) or (1 + cos(pi x)) / 2.
enum class Decay : uint8_t { linear, one_minus_sqrt, cosine };
std::span<const std::string_view> enum_names(Schedule);
std::span<const std::string_view> enum_names(Decay);

/// What a schedule counts: updates, or the tokens seen before them, as where the batch grows.
enum class ScheduleUnit : uint8_t { steps, tokens };
std::span<const std::string_view> enum_names(ScheduleUnit);

/// A batch that grows: first + (last - first) t / steps before `steps`, rounded down to a multiple of
/// `first`, then last. Brown et al. 2020, arXiv:2005.14165, section 2.3; lecture claim L82.
struct BatchRamp {
  int64_t first = 1, last = 1, steps = 0;

  int64_t at(int64_t t) const;
  /// Sum of at(0) .. at(t - 1): where step t begins in the data.
  int64_t before(int64_t t) const;
};

/// Learning rate by step. Step t is the update number, 0 for the first; W the warm-up, N the total,
/// D the length of WSD's decay, f the final fraction, w the fraction where the warm-up starts.
///   t < W          peak (w + (1 - w) t / W), whatever follows (noam has a warm-up of its own)
///   constant       peak
///   linear         peak (f + (1 - f) (N - t) / (N - W))
///   cosine         peak (f + (1 - f) (1 + cos(pi (t - W) / (N - W))) / 2)
///   inverse_sqrt   peak sqrt(W / t)                          (W = 0: as W = 1)
///   noam           peak d^-1/2 min((t + 1)^-1/2, (t + 1) W^-3/2), d the width of the model
///   multi_step     peak factor^(milestones that t has reached)
///   wsd            peak until N - D, then peak (f + (1 - f) decay((t - (N - D)) / D))
/// linear, cosine and wsd stay at peak f after N. An empty phase takes no time: with N <= W the rate
/// falls to peak f right after the warm-up.
/// Loshchilov & Hutter 2017, arXiv:1608.03983 (cosine); Vaswani et al. 2017, arXiv:1706.03762,
/// eq. 3 (noam); Hu et al. 2024, arXiv:2404.06395 (WSD); Haegele et al. 2024, arXiv:2405.18392
/// (1 - sqrt); DeepSeek-AI 2024, arXiv:2401.02954 (multi-step). Lecture claims L76, L77.
struct LearningRate {
  Schedule schedule = Schedule::cosine;
  double peak = 1e-3;
  double final_fraction = 0.1;
  int64_t warmup = 0;
  int64_t total = 0;
  double warmup_from = 0;
  Decay decay = Decay::linear;      // wsd
  int64_t decay_steps = 0;          // wsd
  std::vector<int64_t> milestones;  // multi_step
  double milestone_factor = 0.1;    // multi_step
  int64_t d_model = 1;              // noam
  /// Where the schedule counts tokens: W, N, N - D and the milestones become the tokens seen before
  /// these steps, as does t. Without a ramp the rates are the same to the bit. Not for noam.
  std::optional<BatchRamp> by_tokens = {};

  double at(int64_t t) const;

 private:
  LearningRate in_passes() const;
  double fraction(int64_t t) const;
  int64_t first_ = 1;  // what step 1 begins at, in the unit of t
  double stable_then_decay(int64_t t) const;
};

}  // namespace tally::optim
