#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

// The updates of these three are core/ops/adaptive_update.h.

/// Adagrad: divides by the root of the sum of all squared gradients so far. Duchi, Hazan & Singer
/// 2011, JMLR 12.
class Adagrad final : public Parameterwise {
 public:
  struct Options {
    double lr_decay = 0, eps = 1e-10;
  };
  Adagrad(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(const Update& p) override;
  const char* name() const override { return "adagrad"; }
  Options options_;
};

/// RMSprop: divides by the root of a running mean of squared gradients. Hinton 2012, lecture 6e.
class RMSprop final : public Parameterwise {
 public:
  struct Options {
    double alpha = 0.99, momentum = 0, eps = 1e-8;
  };
  RMSprop(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(const Update& p) override;
  const char* name() const override { return "rmsprop"; }
  Options options_;
};

/// NAdam: Adam with Nesterov's momentum and its schedule. Dozat 2016.
class NAdam final : public Parameterwise {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum_decay = 4e-3;
  };
  NAdam(std::vector<ParameterGroup> groups, const Options& options);
  /// The product of the momenta so far is no function of one step's number.
  bool replayable() const override { return false; }

 private:
  void update(const Update& p) override;
  const char* name() const override { return "nadam"; }
  double product_until(int64_t step);
  Options options_;
  double product_ = 1;  // of the momenta of steps 1 .. product_steps_
  int64_t product_steps_ = 0;
};

}  // namespace tally::optim
