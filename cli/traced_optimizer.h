#pragma once
#include <memory>
#include <string>

#include "core/dtype.h"
#include "data/json.h"
#include "optim/optimizer.h"

namespace tally::cli {

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// The optimizer of a recorded trace, on parameters by name: `trace` is the trace's name, `numbers`
/// its hyperparameters under the names of the framework that recorded it. Its steps are taken with
/// learning rate 1 where `own_rates`: then groups have rates of their own.
struct TracedOptimizer {
  std::unique_ptr<optim::Optimizer> optimizer;
  bool own_rates = false;
};
TracedOptimizer make_traced(const std::string& trace, const Json& numbers,
                            const NamedParameters& parameters, DType dtype);

}  // namespace tally::cli
