#include "optim/combined.h"

#include <algorithm>

namespace tally::optim {
namespace {

std::vector<ParameterGroup> groups_of_all(const std::vector<std::unique_ptr<Optimizer>>& parts) {
  std::vector<ParameterGroup> all;
  for (const auto& part : parts)
    all.insert(all.end(), part->groups().begin(), part->groups().end());
  return all;
}

}  // namespace

Combined::Combined(std::vector<std::unique_ptr<Optimizer>> parts)
    : Optimizer(groups_of_all(parts)), parts_(std::move(parts)) {}

void Combined::step(double lr, const Tensor& gradient_scale) {
  ++steps_;
  for (const auto& part : parts_) part->step(lr, gradient_scale);
}

bool Combined::replayable() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->replayable(); });
}

std::vector<std::pair<std::string, Tensor>> Combined::state() {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& part : parts_) {
    for (auto& named : part->state()) all.push_back(std::move(named));
  }
  return all;
}

void Combined::set_steps(int64_t steps) {
  steps_ = steps;
  for (const auto& part : parts_) part->set_steps(steps);
}

}  // namespace tally::optim
