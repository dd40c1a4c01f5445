#pragma once
#include "optim/optimizer.h"

namespace tally::optim {

/// AdamW: Adam with weight decay outside of the adaptive scaling. The update itself, with its cost,
/// is core/ops/adamw_update.h. Loshchilov & Hutter 2019, arXiv:1711.05101; lecture claims L79-L81.
class AdamW final : public Optimizer {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  };
  AdamW(std::vector<ParameterGroup> groups, const Options& options);
  void step(double lr, const Tensor& gradient_scale = {}) override;
  bool replayable() const override { return true; }
  std::vector<std::pair<std::string, Tensor>> state() override;

 private:
  struct Moments {
    Tensor exp_avg, exp_avg_sq;
  };
  Options options_;
  std::vector<std::vector<Moments>> moments_;  // by group and parameter
};

}  // namespace tally::optim
