#include "optim/adamw.h"

#include "core/ops/adamw_update.h"

namespace tally::optim {

AdamW::AdamW(std::vector<ParameterGroup> groups, const Options& options)
    : Optimizer(std::move(groups)), options_(options) {
  ops::AdamWUpdate::check_attrs({0, options.beta1, options.beta2, options.eps, 0, 1});
  for (const ParameterGroup& g : groups_) {
    std::vector<Moments>& list = moments_.emplace_back();
    for (const auto& [name, t] : g.parameters)
      list.push_back(
          {zeros(t.shape(), t.dtype(), t.device()), zeros(t.shape(), t.dtype(), t.device())});
  }
}

void AdamW::step(double lr, const Tensor& gradient_scale) {
  const PhaseScope phase(Phase::optimizer);
  const ModuleScope scope("adamw");
  ++steps_;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const ParameterGroup& group = groups_[g];
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const auto& [name, t] = group.parameters[i];
      if (!t.grad().defined()) continue;
      const Moments& m = moments_[g][i];
      ops::AdamWUpdate::into(t, m.exp_avg, m.exp_avg_sq, t.grad(), gradient_scale,
                             {lr, options_.beta1, options_.beta2, options_.eps, group.weight_decay,
                              steps_, group.lr_scale});
    }
  }
}

std::vector<std::pair<std::string, Tensor>> AdamW::state() {
  std::vector<std::pair<std::string, Tensor>> list;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < moments_[g].size(); ++i) {
      list.emplace_back("exp_avg." + groups_[g].parameters[i].first, moments_[g][i].exp_avg);
      list.emplace_back("exp_avg_sq." + groups_[g].parameters[i].first, moments_[g][i].exp_avg_sq);
    }
  }
  return list;
}

}  // namespace tally::optim
