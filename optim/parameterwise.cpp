#include "optim/parameterwise.h"

#include "core/ops/cast.h"
#include "core/ops/stochastic_round.h"

namespace tally::optim {
namespace {

// FNV-1a of a parameter's name: its streams do not depend on the group or optimizer it is in.
uint64_t stream_of(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const unsigned char c : name) hash = (hash ^ c) * 0x100000001B3u;
  return hash;
}

Tensor in_type(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : ops::Cast::forward(t, {dtype}, nullptr);
}

}  // namespace

Tensor Parameterwise::widened(const Tensor& w, const OfParameter& of) const {
  return of.master.defined() ? of.master : in_type(w.detach(), acc_dtype(w.dtype()));
}

void Parameterwise::keep(const std::function<Kept(const std::string&, const Tensor&)>& of) {
  for (const ParameterGroup& g : groups_) {
    std::vector<OfParameter>& list = kept_.emplace_back();
    for (const auto& [parameter, w] : g.parameters) {
      const DType wide = acc_dtype(w.dtype());
      const Tensor seen = w.dtype() == wide ? w : in_type(w.detach(), wide);
      const bool kept = w.dtype() != wide && g.bf16_update == Bf16Update::masters;
      list.push_back({of(parameter, seen), kept ? seen : Tensor(), stream_of(parameter)});
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
      const OfParameter& of = kept_[g][i];
      const bool narrow = w.dtype() != acc_dtype(w.dtype());
      const Tensor wide = narrow ? widened(w, of) : w;
      update({wide,
              in_type(w.grad(), wide.dtype()),
              gradient_scale,
              of.kept,
              {lr, group.weight_decay, decoupled(), steps_, group.lr_scale}});
      if (of.master.defined())
        run(w.device(), ops::Cast::Call{wide, w});
      else if (narrow)
        ops::StochasticRound::into(w.detach(), wide, {group.seed, of.stream, steps_});
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
