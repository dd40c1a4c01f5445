#include "optim/parameterwise.h"

#include "core/ops/cast.h"

namespace tally::optim {

void Parameterwise::keep(const std::function<Kept(const std::string&, const Tensor&)>& of) {
  for (const ParameterGroup& g : groups_) {
    std::vector<OfParameter>& list = kept_.emplace_back();
    for (const auto& [parameter, w] : g.parameters) {
      const DType wide = acc_dtype(w.dtype());
      const Tensor master =
          w.dtype() == wide ? Tensor() : ops::Cast::forward(w.detach(), {wide}, nullptr);
      list.push_back({of(parameter, master.defined() ? master : w), master});
    }
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
      if (!w.grad().defined()) continue;
      const auto& [kept, master] = kept_[g][i];
      const bool narrow = master.defined();
      update({narrow ? master : w,
              narrow ? ops::Cast::forward(w.grad(), {master.dtype()}, nullptr) : w.grad(),
              gradient_scale,
              kept,
              {lr, group.weight_decay, decoupled(), steps_, group.lr_scale}});
      if (narrow) run(w.device(), ops::Cast::Call{master, w});
    }
  }
}

std::vector<std::pair<std::string, Tensor>> Parameterwise::state() {
  std::vector<std::pair<std::string, Tensor>> list;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < kept_[g].size(); ++i) {
      const std::string& parameter = groups_[g].parameters[i].first;
      if (kept_[g][i].master.defined())
        list.emplace_back("master." + parameter, kept_[g][i].master);
      for (const auto& [what, t] : kept_[g][i].kept) list.emplace_back(what + "." + parameter, t);
    }
  }
  return list;
}

}  // namespace tally::optim
