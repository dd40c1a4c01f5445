#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

/// AdamW: Adam with weight decay outside of the adaptive scaling. The update itself, with its cost,
/// is core/ops/adamw_update.h. Loshchilov & Hutter 2019, arXiv:1711.05101; lecture claims L79-L81.
class AdamW final : public Parameterwise {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
    bool amsgrad = false;   // divides by the largest second moment so far
    bool decoupled = true;  // false: Adam, with decay as a term of the gradient (L2)
  };
  AdamW(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(const Update& p) override;
  const char* name() const override { return options_.decoupled ? "adamw" : "adam"; }
  bool decoupled() const override { return options_.decoupled; }
  Options options_;
};

}  // namespace tally::optim
