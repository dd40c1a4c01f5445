#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/facts.h"

namespace tally {

/// The last values of a number that is watched. What is not finite never gets in.
class RunningWindow {
 public:
  explicit RunningWindow(int64_t size = 64) : size_(static_cast<size_t>(size)) {}
  void add(double value);
  bool full() const { return values_.size() >= size_; }
  double mean() const;
  double deviation() const;  ///< of the values themselves, not of an estimate
  double median() const;
  const std::vector<double>& values() const { return values_; }  ///< the oldest first
  void set_values(const std::vector<double>& values);

 private:
  size_t size_;
  std::vector<double> values_;
};

/// Looks at the loss and the gradient norm of a step before its update.
///
///   skip    a value above mean + k deviation of the window (train.skip_deviations = k); it enters
///           the window as that limit, so one huge value moves the limit a little, and a level that
///           stays higher is accepted after some steps. A deviation below a thousandth of the mean
///           counts as that: no step is an outlier because the others were equal.
///   spike   a value above k times the median of the window (train.spike_factor = k); counted alone
///
/// Both judge once their window is full (train.guard_window steps). A value that is not finite
/// changes neither. The state is text without loss: a resumed run skips and counts as the unbroken one.
class StepGuard {
 public:
  explicit StepGuard(const TrainConfig& config);

  /// Whether the update is to be skipped. `loss`, `norm`: of the step.
  bool skips(double loss, double norm);
  int64_t skipped() const { return skipped_; }  ///< steps without an update so far
  int64_t spikes() const { return spikes_; }    ///< steps so far; a step counts once
  /// Steps in a row without an update, that of the step just judged among them.
  int64_t in_a_row() const { return in_a_row_; }

  /// Adds to the facts of a checkpoint; nothing while all is off.
  void save(Facts& facts) const;
  /// Error beginning with `where` for facts that are damaged.
  void load(const Facts& facts, const std::string& where);

 private:
  struct Watched {
    explicit Watched(int64_t window) : accepted(window), seen(window) {}
    RunningWindow accepted, seen;  // for skips; for spikes
  };
  bool beyond(Watched& watched, double value) const;
  bool is_spike(Watched& watched, double value) const;

  double deviations_, factor_;
  bool survives_;  // a step that is not finite is skipped
  Watched loss_, norm_;
  int64_t skipped_ = 0, spikes_ = 0, in_a_row_ = 0;
};

}  // namespace tally
