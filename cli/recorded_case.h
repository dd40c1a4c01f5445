#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "models/safetensor_file.h"
#include "nn/module.h"

namespace tally::cli {

/// A case.safetensors: what another framework computed of a model.
class RecordedCase {
 public:
  explicit RecordedCase(const std::string& folder) : file_(folder + "/case.safetensors") {}
  std::vector<double> numbers(const std::string& name) const;
  /// Integers, (B, T) of i64, at least one. Error for another shape.
  Tensor ids(const std::string& name, Device device) const;
  /// The same as bytes: what a mask is.
  Tensor mask(const std::string& name, Device device) const;
  /// A bound that the metadata gives, else `otherwise`. Error unless it is above 0 and up to 0.1.
  double tolerance(const char* name, double otherwise) const;
  const SafetensorFile& file() const { return file_; }

 private:
  SafetensorFile file_;
};

/// A model with its weights, and the inputs of a recorded case.
struct RecordedModel {
  std::unique_ptr<nn::Module> module;
  std::function<Tensor()> logits, loss;
  /// Logits of the token after these, which follow those of the calls before; none for an encoder,
  /// which writes no text.
  std::function<Tensor(const Tensor& ids)> next;
  Tensor start;  // what greedy text begins from
};
/// Of a folder whose architecture is any, with `overrides` of its configuration.
RecordedModel load_recorded(const RecordedCase& c, const std::string& folder, DType dtype,
                            Device device, std::span<const std::string> overrides);

}  // namespace tally::cli
