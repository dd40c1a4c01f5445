#include "optim/lion.h"

#include "core/ops/lion_update.h"

namespace tally::optim {

Lion::Lion(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::LionUpdate::check_attrs({{}, options.beta1, options.beta2});
  keep([](const std::string&, const Tensor& w) { return Kept{{"exp_avg", zeros_like(w)}}; });
}

void Lion::update(const Update& p) {
  ops::LionUpdate::into(p.w, p.state(0), p.gradient, p.scale,
                        {p.attrs, options_.beta1, options_.beta2});
}

}  // namespace tally::optim
