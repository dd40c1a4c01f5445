#include "optim/adamw.h"

#include "core/ops/adamw_update.h"

namespace tally::optim {

AdamW::AdamW(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::AdamWUpdate::check_attrs({0, options.beta1, options.beta2, options.eps, 0, 1});
  keep([&](const std::string&, const Tensor& w) {
    Kept kept{{"exp_avg", zeros_like(w)}, {"exp_avg_sq", zeros_like(w)}};
    if (options.amsgrad) kept.emplace_back("max_exp_avg_sq", zeros_like(w));
    return kept;
  });
}

void AdamW::update(const Update& p) {
  ops::AdamWUpdate::into(p.w, p.state(0), p.state(1), p.gradient, p.scale,
                         {p.attrs.lr, options_.beta1, options_.beta2, options_.eps,
                          p.attrs.weight_decay, p.attrs.step, p.attrs.lr_scale, options_.decoupled},
                         p.maybe(2));
}

}  // namespace tally::optim
