#pragma once
#include <span>
#include <string>
#include <vector>

#include "cli/verify_model.h"

namespace tally::cli {

/// Replays the trace of an optimizer that another framework recorded (keys `f64|f32.init|grad|param`
/// `.NAME` with all steps along the first axis, `.state.NAME.WHAT` after the last, `.total_norm`;
/// hyperparameters as JSON in the metadata): the parameters after every step, the norm where the
/// gradients are clipped, and what is kept under the same name. Errors are relative to the largest
/// recorded value. Error for a trace of an optimizer that this build does not have.
std::vector<Comparison> verify_optim(const std::string& path, std::span<const Device> devices);

}  // namespace tally::cli
