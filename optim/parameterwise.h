#pragma once
#include <functional>

#include "core/ops/update.h"
#include "optim/optimizer.h"

namespace tally::optim {

/// An optimizer whose step goes over the parameters one by one. A derived class says what is kept of
/// a parameter (keep(), in its constructor) and how one changes (update()).
///
/// A parameter in bf16 has a master in f32, made when the optimizer is, kept in its state as
/// "master.NAME": a step smaller than half the distance of two bf16 numbers would be lost in the
/// parameter itself. update() sees the master, and the gradient in f32; the parameter becomes the
/// master rounded. With Adam that is 2 + 2 bytes of weight and gradient, 4 of the master and 8 of
/// moments, 16 a parameter (lecture claims L78, L81). Micikevicius et al. 2018, arXiv:1710.03740.
///
/// With Bf16Update::stochastic there is no master: update() sees the parameter widened for the moment,
/// and what comes out is rounded up or down at random (core/ops/stochastic_round.h), 12 bytes a
/// parameter.
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
  struct OfParameter {
    Kept kept;
    Tensor master;  // undefined where the parameter holds what update() computes in, or is rounded
    uint64_t stream = 0;  // of its rounding
  };
  /// What update() changes of a parameter.
  Tensor widened(const Tensor& w, const OfParameter& of) const;
  std::vector<std::vector<OfParameter>> kept_;  // by group and parameter
};

/// Zeros in the shape of a parameter: what moments start as.
inline Tensor zeros_like(const Tensor& w) {
  return zeros(w.shape(), acc_dtype(w.dtype()), w.device());
}

}  // namespace tally::optim
