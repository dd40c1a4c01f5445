#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

/// Gradient descent, with momentum, dampening and Nesterov's form. The update is
/// core/ops/sgd_update.h.
class SGD final : public Parameterwise {
 public:
  struct Options {
    double momentum = 0, dampening = 0;
    bool nesterov = false;
    bool decoupled = false;  // false: decay is a term of the gradient (L2)
  };
  SGD(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(const Update& p) override;
  const char* name() const override { return "sgd"; }
  bool decoupled() const override { return options_.decoupled; }
  Options options_;
};

}  // namespace tally::optim
