#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/ops/clip.h"

namespace tally::optim {
namespace {

// The name says what a parameter is: tables end in embedding.weight, position.weight and types.weight, norms hold
// "norm.", and every bias and gain is a vector; how fast a state fades is no weight of a product.
bool decays(const std::string& name, const Tensor& t) {
  return t.ndim() >= 2 && !name.ends_with("embedding.weight") &&
         !name.ends_with("position.weight") && !name.ends_with("types.weight") &&
         !name.ends_with("decay_log");
}

// Where the number of its block stands in a name, "blocks.3.mlp.down.weight" or
// "encoder.layers.3.mlp.down.weight"; its end for what is in no block.
size_t block_number_at(const std::string& name) {
  for (const std::string_view word : {"blocks.", "layers."}) {
    const size_t at = name.find(word);
    if (at != std::string::npos) return at + word.size();
  }
  return name.size();
}

// Weights of products inside of the blocks: no tables, head, filters of convolutions or experts'
// biases.
bool is_hidden_matrix(const std::string& name, const Tensor& t) {
  return decays(name, t) && block_number_at(name) < name.size() && name.ends_with(".weight") &&
         !name.ends_with("conv.weight");
}

}  // namespace

std::vector<ParameterGroup> decay_groups(nn::Module& model, double weight_decay) {
  ParameterGroup with{"decay", {}, weight_decay, 1}, without{"no decay", {}, 0, 1};
  for (auto& [name, t] : model.named_parameters())
    (decays(name, t) ? with : without).parameters.emplace_back(name, t);
  return {with, without};
}

std::vector<ParameterGroup> role_groups(nn::Module& model, double weight_decay) {
  ParameterGroup hidden{"hidden matrices", {}, weight_decay, 1};
  std::vector<ParameterGroup> rest = decay_groups(model, weight_decay);
  for (ParameterGroup& g : rest) {
    std::vector<std::pair<std::string, Tensor>> left;
    for (auto& named : g.parameters) {
      const bool is_hidden = is_hidden_matrix(named.first, named.second);
      (is_hidden ? hidden.parameters : left).push_back(std::move(named));
    }
    g.parameters = std::move(left);
  }
  rest.insert(rest.begin(), std::move(hidden));
  return rest;
}

namespace {

// "0-3,5" of 0, 1, 2, 3, 5.
std::string ranges_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + to_text(numbers[i]);
    if (last > i) text += "-" + to_text(numbers[last]);
    i = last + 1;
  }
  return text;
}

// A parameter of a block stands for the same one of all blocks: "blocks.0-11.mlp.down.weight".
std::string short_names(const ParameterGroup& g) {
  struct Line {
    std::string before, after;
    std::vector<int64_t> layers;
  };
  std::vector<Line> lines;
  for (const auto& [name, t] : g.parameters) {
    const size_t number = block_number_at(name);
    const size_t end = std::min(name.find('.', number), name.size());
    const bool in_block = number < end;
    Line line{name.substr(0, number), in_block ? name.substr(end) : "", {}};
    const auto same = std::ranges::find_if(
        lines, [&](const Line& l) { return l.before == line.before && l.after == line.after; });
    Line& place = same == lines.end() ? lines.emplace_back(std::move(line)) : *same;
    if (in_block) place.layers.push_back(std::stoll(name.substr(number, end - number)));
  }
  std::string text;
  for (const Line& l : lines)
    text += (text.empty() ? "" : ", ") + l.before + ranges_text(l.layers) + l.after;
  return text;
}

}  // namespace

std::string describe(const std::vector<ParameterGroup>& groups) {
  std::string text;
  for (const ParameterGroup& g : groups) {
    if (g.parameters.empty()) continue;
    int64_t n = 0;
    for (const auto& [name, t] : g.parameters) n += t.numel();
    const std::string names = short_names(g);
    text += g.name + " (weight decay " + to_text(g.weight_decay) +
            (g.lr_scale == 1 ? "" : ", lr times " + to_text(g.lr_scale)) + ", " + to_text(n) +
            " numbers): " + names + "\n";
  }
  return text;
}

void Optimizer::zero_grad() {
  for (ParameterGroup& g : groups_) {
    for (auto& [name, t] : g.parameters) t.set_grad({});
  }
}

namespace {

struct GradientList {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
};
GradientList gradients_of(const std::vector<ParameterGroup>& groups) {
  GradientList list;
  for (const ParameterGroup& g : groups) {
    for (const auto& [name, t] : g.parameters) {
      list.names.push_back(name);
      list.tensors.push_back(t.grad());
    }
  }
  return list;
}

}  // namespace

ClippedNorm clip_factor(const std::vector<ParameterGroup>& groups, double max_norm) {
  const PhaseScope phase(Phase::optimizer);
  const ModuleScope scope("clip");
  const auto [factor, norm] =
      ops::clip_global_norm(gradients_of(groups).tensors, max_norm > 0 ? max_norm : INFINITY);
  return {norm, factor};
}

std::string first_bad_gradient(const std::vector<ParameterGroup>& groups) {
  const GradientList list = gradients_of(groups);
  const int64_t bad = ops::first_not_finite(list.tensors);
  return bad < 0 ? "" : list.names[static_cast<size_t>(bad)];
}

}  // namespace tally::optim
