#pragma once
#include <memory>

#include "optim/optimizer.h"

namespace tally::optim {

/// Several optimizers as one, each with the parameters that suit it: hidden matrices by Muon,
/// Shampoo or SOAP, all else by AdamW.
class Combined final : public Optimizer {
 public:
  explicit Combined(std::vector<std::unique_ptr<Optimizer>> parts);
  void step(double lr, const Tensor& gradient_scale = {}) override;
  bool replayable() const override;
  std::vector<std::pair<std::string, Tensor>> state() override;
  void set_steps(int64_t steps) override;

 private:
  std::vector<std::unique_ptr<Optimizer>> parts_;
};

}  // namespace tally::optim
