#include "optim/adaptive.h"

#include "core/ops/adaptive_update.h"

namespace tally::optim {

Adagrad::Adagrad(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::AdagradUpdate::check_attrs({{}, options.lr_decay, options.eps});
  keep([](const std::string&, const Tensor& w) { return Kept{{"sum", zeros_like(w)}}; });
}

void Adagrad::update(const Update& p) {
  ops::AdagradUpdate::into(p.w, p.state(0), p.gradient, p.scale,
                           {p.attrs, options_.lr_decay, options_.eps});
}

RMSprop::RMSprop(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::RmspropUpdate::check_attrs({{}, options.alpha, options.momentum, options.eps});
  keep([&](const std::string&, const Tensor& w) {
    Kept kept{{"square_avg", zeros_like(w)}};
    if (options.momentum > 0) kept.emplace_back("momentum_buffer", zeros_like(w));
    return kept;
  });
}

void RMSprop::update(const Update& p) {
  ops::RmspropUpdate::into(p.w, p.state(0), p.maybe(1), p.gradient, p.scale,
                           {p.attrs, options_.alpha, options_.momentum, options_.eps});
}

NAdam::NAdam(std::vector<ParameterGroup> groups, const Options& options)
    : Parameterwise(std::move(groups)), options_(options) {
  ops::NadamUpdate::check_attrs(
      {{}, options.beta1, options.beta2, options.eps, options.momentum_decay, 0});
  keep([](const std::string&, const Tensor& w) {
    return Kept{{"exp_avg", zeros_like(w)}, {"exp_avg_sq", zeros_like(w)}};
  });
}

// Multiplied in one order whatever the number of breaks: a resumed run gets the same bits.
double NAdam::product_until(int64_t step) {
  if (step < product_steps_) product_ = 1, product_steps_ = 0;
  while (product_steps_ < step) {
    product_ *=
        ops::NadamUpdate::momentum_of(++product_steps_, options_.beta1, options_.momentum_decay);
  }
  return product_;
}

void NAdam::update(const Update& p) {
  ops::NadamUpdate::into(p.w, p.state(0), p.state(1), p.gradient, p.scale,
                         {p.attrs, options_.beta1, options_.beta2, options_.eps,
                          options_.momentum_decay, product_until(p.attrs.step)});
}

}  // namespace tally::optim
