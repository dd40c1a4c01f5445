#include "optim/make.h"

#include "optim/adafactor.h"
#include "optim/adamw.h"
#include "optim/adaptive.h"
#include "optim/combined.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "optim/sgd.h"
#include "optim/shampoo.h"
#include "optim/soap.h"

namespace tally::optim {
namespace {

constexpr std::string_view kOptimizers[] = {"adamw",     "adam",         "sgd",     "lion",
                                            "adafactor", "adafactor_t5", "muon",    "shampoo",
                                            "soap",      "adagrad",      "rmsprop", "nadam"};

constexpr std::string_view kBf16Updates[] = {"masters", "stochastic"};

using Groups = std::vector<ParameterGroup>;

std::unique_ptr<Optimizer> make_adamw(Groups groups, const OptimizerChoice& c, bool decoupled) {
  return std::make_unique<AdamW>(std::move(groups),
                                 AdamW::Options{c.beta1, c.beta2, c.eps, c.amsgrad, decoupled});
}

std::unique_ptr<Optimizer> make_matrix_part(Groups groups, const OptimizerChoice& c) {
  const int64_t every = c.precondition_every, longest = c.precondition_longest;
  if (c.kind == OptimizerKind::muon)
    return std::make_unique<Muon>(std::move(groups),
                                  Muon::Options{c.momentum, c.nesterov, 5, c.muon_scaling, false});
  if (c.kind == OptimizerKind::shampoo)
    return std::make_unique<Shampoo>(std::move(groups),
                                     Shampoo::Options{1e-6, every, longest, true});
  return std::make_unique<SOAP>(std::move(groups),
                                SOAP::Options{c.beta1, c.beta2, c.eps, every, longest});
}

Groups rounded_as(const OptimizerChoice& c, Groups groups) {
  for (ParameterGroup& g : groups) g.bf16_update = c.bf16_update, g.seed = c.seed;
  return groups;
}

// A step takes lr_scale lr weight_decay of a weight, and the hidden ones shall lose no less.
Groups scaled_groups(nn::Module& model, const OptimizerChoice& c, bool decoupled) {
  Groups groups = role_groups(model, c.weight_decay);
  groups[0].lr_scale = c.hidden_lr_scale;
  if (decoupled) groups[0].weight_decay /= c.hidden_lr_scale;
  return groups;
}

std::unique_ptr<Optimizer> make_by_role(nn::Module& model, const OptimizerChoice& c) {
  Groups hidden = rounded_as(c, role_groups(model, c.weight_decay)), rest;
  rest.assign(hidden.begin() + 1, hidden.end());
  hidden.resize(1);
  for (ParameterGroup& g : rest) g.lr_scale = c.rest_lr_scale;
  OptimizerChoice adamw = c;
  adamw.amsgrad = false;
  std::vector<std::unique_ptr<Optimizer>> parts;
  parts.push_back(make_matrix_part(std::move(hidden), c));
  parts.push_back(make_adamw(std::move(rest), adamw, true));
  return std::make_unique<Combined>(std::move(parts));
}

}  // namespace

std::span<const std::string_view> enum_names(OptimizerKind) { return kOptimizers; }
std::span<const std::string_view> enum_names(Bf16Update) { return kBf16Updates; }

std::unique_ptr<Optimizer> make_optimizer(nn::Module& model, const OptimizerChoice& c) {
  if (c.bf16_update == Bf16Update::stochastic) {
    for (const auto& [name, t] : model.named_parameters())
      check(t.dtype() == DType::bf16,
            "optimizer: bf16_update = stochastic rounds weights in bf16, "
            "and ",
            name, " is in ", t.dtype(), "; give --dtype bf16, or leave it out");
  }
  const bool decoupled = c.kind != OptimizerKind::adam;
  const auto groups = [&] {
    return rounded_as(c, c.hidden_lr_scale == 1 ? decay_groups(model, c.weight_decay)
                                                : scaled_groups(model, c, decoupled));
  };
  switch (c.kind) {
    case OptimizerKind::adamw:
      return make_adamw(groups(), c, true);
    case OptimizerKind::adam:
      return make_adamw(groups(), c, false);
    case OptimizerKind::sgd:
      return std::make_unique<SGD>(
          groups(), SGD::Options{c.momentum, 0, c.nesterov && c.momentum > 0, false});
    case OptimizerKind::lion:
      return std::make_unique<Lion>(groups(), Lion::Options{c.beta1, c.beta2});
    case OptimizerKind::adafactor:
      return std::make_unique<Adafactor>(groups(), Adafactor::torch_form());
    case OptimizerKind::adafactor_t5:
      return std::make_unique<Adafactor>(groups(), Adafactor::t5_form());
    case OptimizerKind::adagrad:
      return std::make_unique<Adagrad>(groups(), Adagrad::Options{});
    case OptimizerKind::rmsprop:
      return std::make_unique<RMSprop>(groups(), RMSprop::Options{c.beta2, c.momentum, c.eps});
    case OptimizerKind::nadam:
      return std::make_unique<NAdam>(groups(), NAdam::Options{c.beta1, c.beta2, c.eps});
    default:
      return make_by_role(model, c);
  }
}

double state_bytes(Optimizer& optimizer) {
  double bytes = 0;
  for (const auto& [name, t] : optimizer.state()) bytes += static_cast<double>(t.nbytes());
  return bytes;
}

}  // namespace tally::optim
