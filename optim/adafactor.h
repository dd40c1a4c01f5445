#pragma once
#include "optim/parameterwise.h"

namespace tally::optim {

/// Adafactor: the second moment of a matrix as one row and one column of means, so that almost
/// nothing is kept. The update, and what the options mean, is core/ops/adafactor_update.h. Shazeer &
/// Stern 2018, arXiv:1804.04235; lecture claim L89.
class Adafactor final : public Parameterwise {
 public:
  struct Options {
    double beta1 = 0;  // above 0: a first moment is kept too
    double beta2_decay = 0.8, eps = 1e-30, floor = 0, clip = 1, smallest = 1e-3;
    bool scaled = true, relative = false, decay_by_size = true;
  };
  /// The form of PyTorch: min(lr, 1 / sqrt(t)) times the size of the weights, a floor under the
  /// second moment, decay by lr.
  static Options torch_form();
  /// The form that T5 was trained with: an lr from outside or, if `relative`, 1 / sqrt(t) up to 0.01.
  static Options t5_form() { return {}; }

  Adafactor(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(const Update& p) override;
  const char* name() const override { return "adafactor"; }
  Options options_;
};

}  // namespace tally::optim
