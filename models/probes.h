#pragma once
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/watch.h"
#include "models/gradient_noise.h"
#include "optim/optimizer.h"

namespace tally {

/// Measured values of one training step by probe name, each a list of (place, value): the place is
/// a layer ("blocks[3]"), a parameter ("blocks.3.mlp.down.weight") or a statistic ("rms"). What
/// each means, with its formula: docs/probes.md.
using ProbeValues = std::map<std::string, std::vector<std::pair<std::string, double>>>;

/// Measures the step that runs on this thread while it is in scope. It only reads, so the step has
/// the same bits as without it.
class Probes : public Watcher {
 public:
  /// `names`: of probe_names(); `groups`: the parameters that the step will update.
  Probes(const std::vector<std::string>& names, const std::vector<optim::ParameterGroup>& groups);

  void before(const WatchedCall& call) override;
  void after(const WatchedCall& call, const Entry& entry) override;

  /// What the step says of its gradients' noise; nothing with one micro-batch.
  void noise(const GradientNoise& g);

  /// Looks at the optimizer's first moments (Optimizer::state()), as the step left them.
  void moments(const std::vector<std::pair<std::string, Tensor>>& state);

  /// What was measured, micro-batches of the step taken together: roots of mean squares, means, and
  /// the largest of maxima.
  ProbeValues values();

 private:
  struct Mean {
    double sum = 0, count = 0;
    bool root = false;  // of the mean of squares
    double value() const;
  };
  using Places = std::vector<std::pair<std::string, Mean>>;

  bool wants(const char* probe) const { return places_.contains(probe); }
  Mean& at(const char* probe, const std::string& place);
  void add(const char* probe, const std::string& place, double sum, double count,
           bool root = false);
  void raise(const char* probe, const std::string& place, double value);
  void settle_stream();
  void residual(const WatchedCall& call, const Entry& entry);
  void attention(const WatchedCall& call, const Entry& entry);
  void router(const WatchedCall& call, const Entry& entry);
  void loss(const WatchedCall& call);
  /// What one update did.
  struct Updated {
    const void* place = nullptr;   // of what was updated
    double gradient_squares = -1;  // below 0: not measured
    double change = 0, weight = 0;
    double rank = NAN;
  };
  void record(const std::string& parameter, const Updated& u);
  void update(const WatchedCall& call);

  std::map<std::string, Places> places_;           // by the names of the probes that are on
  std::map<const void*, std::string> parameters_;  // by address
  std::string stream_place_;                       // of the residual stream, not yet final
  double stream_squares_ = 0, stream_count_ = 0;
  std::string branch_;                    // the sub-layer that ran last
  std::vector<std::byte> old_parameter_;  // before its update
  Updated updated_;                       // the master of a parameter whose name is not met yet
};

}  // namespace tally
