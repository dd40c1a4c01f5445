#pragma once
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"

namespace tally::cli {

/// One figure of a recorded case beside ours.
struct Comparison {
  std::string what;
  double error = 0, bound = 0;
  bool ok() const { return error <= bound; }
};

/// Replays a model folder that another framework recorded (config.json, model.safetensors,
/// case.safetensors) of any architecture: logits, loss, the gradient of every parameter, greedy
/// continuation with the KV cache (none for encoders). In bf16 logits and loss alone. Errors are relative to the largest recorded value. In float64 the float64 record is
/// used.
std::vector<Comparison> verify_model(const std::string& folder, DType dtype, Device device);

}  // namespace tally::cli
