#pragma once
#include <cstdint>
#include <string>

#include "models/config.h"
#include "models/facts.h"

namespace tally {

/// The lowest loss of the evaluations so far, and how many have brought none since.
class EarlyStop {
 public:
  explicit EarlyStop(const TrainConfig& config)
      : patience_(config.patience), min_delta_(config.min_delta) {}

  /// Takes the loss of an evaluation after `step` updates. True where it is lower than the best by
  /// more than train.min_delta, or the first.
  bool judge(int64_t step, double loss);
  /// True when train.patience evaluations in a row have brought nothing.
  bool out_of_patience() const { return patience_ > 0 && since_ >= patience_; }
  int64_t best_step() const { return best_step_; }  ///< -1: nothing was evaluated yet
  double best_loss() const { return best_loss_; }

  /// Adds to the facts of a checkpoint; nothing before the first evaluation.
  void save(Facts& facts) const;
  /// Error beginning with `where` for facts that are damaged.
  void load(const Facts& facts, const std::string& where);

 private:
  int64_t patience_;
  double min_delta_;
  int64_t best_step_ = -1, since_ = 0;
  double best_loss_ = 0;
};

}  // namespace tally
