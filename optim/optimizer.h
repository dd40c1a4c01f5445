#pragma once
#include <string>
#include <vector>

#include "nn/module.h"
#include "optim/choices.h"

namespace tally::optim {

/// Parameters that are treated alike.
struct ParameterGroup {
  std::string name;
  std::vector<std::pair<std::string, Tensor>> parameters;
  double weight_decay = 0;
  double lr_scale = 1;
  Bf16Update bf16_update = Bf16Update::masters;  // of those in bf16
  uint64_t seed = 1;                             // of rounding at random
};

/// Splits the parameters of a model by what weight decay reaches (lecture claim L67): matrices of
/// linear layers decay, embeddings, norms and biases do not. Every parameter lands in one group, a
/// tied one once.
std::vector<ParameterGroup> decay_groups(nn::Module& model, double weight_decay);

/// Groups by role: the hidden matrices (first), then the rest as decay_groups has it.
std::vector<ParameterGroup> role_groups(nn::Module& model, double weight_decay);

/// One line a group that has parameters: its name, decay and the parameters in it, those of the blocks as one each
/// (blocks.0-11.mlp.down.weight).
std::string describe(const std::vector<ParameterGroup>& groups);

/// Changes parameters by their gradients. Every update is a call with a cost, so the ledger lists
/// it.
class Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update with learning rate `lr`. `gradient_scale`, one f32 or f64 element on the
  /// parameters' device or undefined, multiplies every gradient: the clip factor. Parameters
  /// without a gradient are left alone.
  virtual void step(double lr, const Tensor& gradient_scale = {}) = 0;
  /// True when every call of step() learns the step's learning rate and number from
  /// rebind(const StepChange&) (core/program.h), so that a recorded step may be run again.
  virtual bool replayable() const { return false; }
  /// The state by name ("exp_avg.blocks.0..."), for save and resume: what is written there is used
  /// by the next step.
  virtual std::vector<std::pair<std::string, Tensor>> state() = 0;

  /// Updates done so far; bias corrections follow it.
  int64_t steps() const { return steps_; }
  virtual void set_steps(int64_t steps) { steps_ = steps; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  void zero_grad();

 protected:
  std::vector<ParameterGroup> groups_;
  int64_t steps_ = 0;
};

/// Global norm of all gradients and the factor that brings it down to `max_norm` (0: leave it),
/// both as device scalars. Nothing is copied to the host, so it is recorded on meta too.
struct ClippedNorm {
  Tensor norm, factor;  // one element each
};
ClippedNorm clip_factor(const std::vector<ParameterGroup>& groups, double max_norm);

/// Name of the first parameter whose gradient holds a NaN or an infinity; "" if all are finite.
std::string first_bad_gradient(const std::vector<ParameterGroup>& groups);

}  // namespace tally::optim
