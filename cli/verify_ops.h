#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/verify_model.h"
#include "core/tensor.h"
#include "data/json.h"

namespace tally::cli {

/// A recorded case of an op, fed in one element type on one device.
class OpCase {
 public:
  Json attributes;
  std::map<std::string, Tensor> inputs;
  DType dtype = DType::f64;
  Device device;
  std::string case_name;

  /// An input by name; Error if the case has none of that name.
  const Tensor& in(const std::string& name) const;
  /// The same, undefined if the case has none.
  Tensor maybe(const std::string& name) const;
  double number(const char* attribute) const;
  int integer(const char* attribute) const;
  bool flag(const char* attribute) const;
  std::string text(const char* attribute) const;
  /// A list of integers: axes, sizes, a shape.
  Shape list(const char* attribute) const;
  bool has(const char* attribute) const { return attributes.contains(attribute); }
  /// A tensor of one value, of the type of the case.
  Tensor constant(double value, const Shape& shape = {}) const;
};

/// What an op gives for a case: its outputs under the names that the record uses; none where it
/// cannot replay the case.
using OpOutputs = std::map<std::string, Tensor>;
using OpFunction = OpOutputs (*)(const OpCase&);
using OpTable = std::map<std::string, OpFunction, std::less<>>;

/// The ops that this build can replay, by the record's name: one table a group.
void add_attention_ops(OpTable& table);
void add_basic_ops(OpTable& table);
void add_loss_ops(OpTable& table);
void add_mixer_ops(OpTable& table);
void add_model_ops(OpTable& table);
void add_position_ops(OpTable& table);
void add_product_ops(OpTable& table);
void add_schedule_ops(OpTable& table);
OpTable op_table();

/// What replaying a file found: a comparison for each tensor, type and device.
struct OpReport {
  std::vector<Comparison> rows;
  std::vector<std::string> not_built;  // "op.case" of what cannot be replayed
};

/// Replays a file of recorded ops (keys `op.case.in|out|gradout|gradin.name`, attributes as JSON in
/// the metadata): feeds `in`, compares `out`, starts the backward pass from `gradout`, compares
/// `gradin`; in float64 and, where the case has a `float32_error` and inputs that fit, in float32.
/// Errors are relative to the largest recorded value, absolute where all are 0.
OpReport verify_ops(const std::string& path, std::span<const Device> devices);

}  // namespace tally::cli
