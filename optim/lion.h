#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

/// Lion: the sign of a mixture of gradient and momentum; one moment, half of AdamW's state. The
/// update is core/ops/lion_update.h. Chen et al. 2023, arXiv:2302.06675; lecture claim L89.
class Lion final : public Parameterwise {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.99;
  };
  Lion(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(const Update& p) override;
  const char* name() const override { return "lion"; }
  Options options_;
};

}  // namespace tally::optim
