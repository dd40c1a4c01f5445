#include "optim/optimizer.h"

#include <cmath>

#include "core/ops/clip.h"

namespace tally::optim {
namespace {

// The name says what a parameter is: tables end in embedding.weight and position.weight, norms hold
// "norm.", and every bias and gain is a vector.
bool decays(const std::string& name, const Tensor& t) {
  return t.ndim() == 2 && !name.starts_with("embedding.") && !name.starts_with("position.");
}

bool is_finite(const Tensor& t) {
  const auto all = []<class T>(std::span<const T> values) {
    for (T v : values) {
      if (!std::isfinite(static_cast<float>(v))) return false;
    }
    return true;
  };
  switch (t.dtype()) {
    case DType::f32: return all(std::span<const float>(t.host<float>()));
    case DType::f64: return all(std::span<const double>(t.host<double>()));
    case DType::bf16: return all(std::span<const bf16>(t.host<bf16>()));
    default: return true;
  }
}

}  // namespace

std::vector<ParameterGroup> decay_groups(nn::Module& model, double weight_decay) {
  ParameterGroup with{"decay", {}, weight_decay, 1}, without{"no decay", {}, 0, 1};
  for (auto& [name, t] : model.named_parameters()) (decays(name, t) ? with : without).parameters.emplace_back(name, t);
  return {with, without};
}

std::string describe(const std::vector<ParameterGroup>& groups) {
  std::string text;
  for (const ParameterGroup& g : groups) {
    int64_t n = 0;
    std::string names;
    for (const auto& [name, t] : g.parameters) {
      n += t.numel();
      names += (names.empty() ? "" : ", ") + name;
    }
    text += g.name + " (weight decay " + to_text(g.weight_decay) + ", " + to_text(n) + " numbers): " + names + "\n";
  }
  return text;
}

void Optimizer::zero_grad() {
  for (ParameterGroup& g : groups_) {
    for (auto& [name, t] : g.parameters) t.set_grad({});
  }
}

ClippedNorm clip_factor(const std::vector<ParameterGroup>& groups, double max_norm) {
  const PhaseScope phase(Phase::optimizer);
  const ModuleScope scope("clip");
  std::vector<Tensor> gradients;
  for (const ParameterGroup& g : groups) {
    for (const auto& [name, t] : g.parameters) {
      if (t.grad().defined()) gradients.push_back(t.grad());
    }
  }
  const auto [norm, factor] = ops::clip_factor(gradients, max_norm);
  return {norm, factor};
}

std::string first_bad_gradient(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& g : groups) {
    for (const auto& [name, t] : g.parameters) {
      if (t.grad().defined() && !is_finite(t.grad())) return name;
    }
  }
  return "";
}

}  // namespace tally::optim
