#include "optim/parameterwise.h"

namespace tally::optim {

void Parameterwise::keep(const std::function<Kept(const std::string&, const Tensor&)>& of) {
  for (const ParameterGroup& g : groups_) {
    std::vector<Kept>& list = kept_.emplace_back();
    for (const auto& [parameter, w] : g.parameters) list.push_back(of(parameter, w));
  }
}

void Parameterwise::step(double lr, const Tensor& gradient_scale) {
  const PhaseScope phase(Phase::optimizer);
  const ModuleScope scope(name());
  ++steps_;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const ParameterGroup& group = groups_[g];
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const Tensor& w = group.parameters[i].second;
      const Tensor gradient = w.grad();
      if (!gradient.defined()) continue;
      update({w,
              gradient,
              gradient_scale,
              kept_[g][i],
              {lr, group.weight_decay, decoupled(), steps_, group.lr_scale}});
    }
  }
}

std::vector<std::pair<std::string, Tensor>> Parameterwise::state() {
  std::vector<std::pair<std::string, Tensor>> list;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < kept_[g].size(); ++i) {
      for (const auto& [what, t] : kept_[g][i])
        list.emplace_back(what + "." + groups_[g].parameters[i].first, t);
    }
  }
  return list;
}

}  // namespace tally::optim
