#include "cli/traced_optimizer.h"

#include <limits>

#include "optim/adafactor.h"
#include "optim/adamw.h"
#include "optim/adaptive.h"
#include "optim/combined.h"
#include "optim/lion.h"
#include "optim/muon.h"
#include "optim/sgd.h"
#include "optim/shampoo.h"
#include "optim/soap.h"

namespace tally::cli {
namespace {

using Groups = std::vector<optim::ParameterGroup>;
using Made = std::unique_ptr<optim::Optimizer>;

double number(const Json& j, const char* key, double otherwise) {
  return j.contains(key) && !j[key].is_null() ? j[key].get<double>() : otherwise;
}
bool flag(const Json& j, const char* key, bool otherwise) { return j.value(key, otherwise); }
double beta(const Json& j, size_t i, double otherwise) {
  return j.contains("betas") ? j["betas"].at(i).get<double>() : otherwise;
}

Made adam(Groups g, const Json& j, bool decoupled) {
  return std::make_unique<optim::AdamW>(
      std::move(g),
      optim::AdamW::Options{beta(j, 0, 0.9), beta(j, 1, 0.999), number(j, "eps", 1e-8),
                            flag(j, "amsgrad", false), decoupled});
}
Made sgd(Groups g, const Json& j) {
  return std::make_unique<optim::SGD>(
      std::move(g), optim::SGD::Options{number(j, "momentum", 0), number(j, "dampening", 0),
                                        flag(j, "nesterov", false), false});
}
Made adafactor(Groups g, const Json& j, bool t5, DType dtype) {
  optim::Adafactor::Options o = t5 ? optim::Adafactor::t5_form() : optim::Adafactor::torch_form();
  if (t5) {
    o.relative = flag(j, "relative_step", true);
    o.scaled = flag(j, "scale_parameter", true);
    check(!flag(j, "warmup_init", false), "adafactor: warmup_init is a schedule of its own here");
    o.clip = number(j, "clip_threshold", 1);
    o.beta1 = number(j, "beta1", 0);
  } else {
    const double epsilon = dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                                               : std::numeric_limits<float>::epsilon();
    const bool given = j.contains("eps");
    const double floor =
        given && !j["eps"].at(0).is_null() ? j["eps"].at(0).get<double>() : epsilon;
    o.floor = floor * floor;
    if (given) o.smallest = j["eps"].at(1).get<double>();
    o.beta2_decay = -number(j, "beta2_decay", -0.8);
    o.clip = number(j, "d", 1);
  }
  return std::make_unique<optim::Adafactor>(std::move(g), o);
}
Made muon(Groups g, const Json& j, bool eps_added) {
  const bool match = j.value("adjust_lr_fn", std::string()) == "match_rms_adamw";
  return std::make_unique<optim::Muon>(
      std::move(g),
      optim::Muon::Options{number(j, "momentum", 0.95), flag(j, "nesterov", true),
                           static_cast<int64_t>(number(j, "ns_steps", 5)),
                           match ? optim::MuonScaling::match_rms : optim::MuonScaling::original,
                           eps_added});
}
Made shampoo(Groups g, const Json& j) {
  check(number(j, "momentum", 0) == 0, "shampoo: momentum is not part of it here");
  return std::make_unique<optim::Shampoo>(
      std::move(g),
      optim::Shampoo::Options{number(j, "matrix_eps", 1e-6),
                              static_cast<int64_t>(number(j, "preconditioning_compute_steps", 1)),
                              8192, flag(j, "weight_decouple", false)});
}
Made soap(Groups g, const Json& j) {
  return std::make_unique<optim::SOAP>(
      std::move(g),
      optim::SOAP::Options{beta(j, 0, 0.95), beta(j, 1, 0.95), number(j, "eps", 1e-8),
                           static_cast<int64_t>(number(j, "precondition_frequency", 10)),
                           static_cast<int64_t>(number(j, "max_precondition_dim", 10000))});
}
Made adagrad(Groups g, const Json& j) {
  return std::make_unique<optim::Adagrad>(
      std::move(g), optim::Adagrad::Options{number(j, "lr_decay", 0), number(j, "eps", 1e-10)});
}
Made rmsprop(Groups g, const Json& j) {
  return std::make_unique<optim::RMSprop>(
      std::move(g), optim::RMSprop::Options{number(j, "alpha", 0.99), number(j, "momentum", 0),
                                            number(j, "eps", 1e-8)});
}
Made nadam(Groups g, const Json& j) {
  return std::make_unique<optim::NAdam>(
      std::move(g),
      optim::NAdam::Options{beta(j, 0, 0.9), beta(j, 1, 0.999), number(j, "eps", 1e-8),
                            number(j, "momentum_decay", 4e-3)});
}

/// The group of a description: {"params": [...], "lr": ..., "weight_decay": ...}.
optim::ParameterGroup group_of(const Json& j, const NamedParameters& parameters) {
  optim::ParameterGroup g{"group", {}, number(j, "weight_decay", 0), number(j, "lr", 1)};
  for (const auto& name : j.at("params")) {
    for (const auto& named : parameters) {
      if (named.first == name.get<std::string>()) g.parameters.push_back(named);
    }
  }
  return g;
}

/// `trace` begins with the optimizer's name; longer names come first.
Made by_name(const std::string& trace, Groups g, const Json& j, DType dtype) {
  const auto is = [&](const char* prefix) { return trace.starts_with(prefix); };
  if (is("adamw")) return adam(std::move(g), j, true);
  if (is("adafactor_t5")) return adafactor(std::move(g), j, true, dtype);
  if (is("adafactor")) return adafactor(std::move(g), j, false, dtype);
  if (is("adagrad")) return adagrad(std::move(g), j);
  if (is("adam")) return adam(std::move(g), j, false);
  if (is("sgd")) return sgd(std::move(g), j);
  if (is("lion"))
    return std::make_unique<optim::Lion>(std::move(g),
                                         optim::Lion::Options{beta(j, 0, 0.9), beta(j, 1, 0.99)});
  if (is("muon")) return muon(std::move(g), j, trace == "muon_keller");
  if (is("nadam")) return nadam(std::move(g), j);
  if (is("rmsprop")) return rmsprop(std::move(g), j);
  if (is("shampoo")) return shampoo(std::move(g), j);
  check(is("soap"), "there is no optimizer for the trace '", trace, "'");
  return soap(std::move(g), j);
}

}  // namespace

TracedOptimizer make_traced(const std::string& trace, const Json& numbers,
                            const NamedParameters& parameters, DType dtype) {
  if (numbers.contains("muon")) {
    std::vector<Made> parts;
    for (const char* part : {"muon", "adamw"})
      parts.push_back(
          by_name(part, {group_of(numbers.at(part), parameters)}, numbers.at(part), dtype));
    return {std::make_unique<optim::Combined>(std::move(parts)), true};
  }
  if (numbers.contains("groups")) {
    Groups groups;
    for (const Json& g : numbers["groups"]) groups.push_back(group_of(g, parameters));
    return {by_name(trace, std::move(groups), numbers, dtype), true};
  }
  return {
      by_name(trace, {{"all", parameters, number(numbers, "weight_decay", 0), 1}}, numbers, dtype),
      false};
}

}  // namespace tally::cli
