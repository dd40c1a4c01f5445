#pragma once
#include <functional>

#include "core/ops/update.h"
#include "optim/optimizer.h"

namespace tally::optim {

/// An optimizer whose step goes over the parameters one by one: most of them. A derived class says
/// what is kept of a parameter (keep(), in its constructor) and how one changes (update()).
class Parameterwise : public Optimizer {
 public:
  void step(double lr, const Tensor& gradient_scale = {}) final;
  bool replayable() const override { return true; }
  std::vector<std::pair<std::string, Tensor>> state() final;

 protected:
  using Optimizer::Optimizer;
  /// What is kept of one parameter, by name; the order is that of Update::kept.
  using Kept = std::vector<std::pair<std::string, Tensor>>;
  void keep(const std::function<Kept(const std::string& name, const Tensor& w)>& of);

  /// One parameter in one step.
  struct Update {
    const Tensor& w;
    const Tensor& gradient;
    const Tensor& scale;  // of the gradient: the clip factor; may be undefined
    const Kept& kept;
    ops::UpdateAttrs attrs;  // learning rate, decay and number of the step

    const Tensor& state(size_t i) const { return kept[i].second; }
    /// A tensor that is kept in some configurations alone: undefined beyond those that are.
    Tensor maybe(size_t i) const { return i < kept.size() ? kept[i].second : Tensor(); }
  };
  virtual void update(const Update& p) = 0;
  /// What the ledger calls the module.
  virtual const char* name() const = 0;
  /// False where the decay is a term of the gradient (L2).
  virtual bool decoupled() const { return true; }

 private:
  std::vector<std::vector<Kept>> kept_;  // by group and parameter
};

/// Zeros in the shape of a parameter: what moments start as.
inline Tensor zeros_like(const Tensor& w) {
  return zeros(w.shape(), acc_dtype(w.dtype()), w.device());
}

}  // namespace tally::optim
