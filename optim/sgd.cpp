#include "optim/sgd.h"

#include "core/ops/sgd_update.h"

namespace tally::optim {

SGD::SGD(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::SgdUpdate::check_attrs({{}, options.momentum, options.dampening, options.nesterov});
  keep([&](const std::string&, const Tensor& w) {
    return options.momentum > 0 ? Kept{{"momentum_buffer", zeros_like(w)}} : Kept{};
  });
}

void SGD::update(const Update& p) {
  ops::SgdUpdate::into(p.w, p.maybe(0), p.gradient, p.scale,
                       {p.attrs, options_.momentum, options_.dampening, options_.nesterov});
}

}  // namespace tally::optim
