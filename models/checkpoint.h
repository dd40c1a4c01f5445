#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/hf_config.h"
#include "models/weight_files.h"
#include "models/weight_source.h"

namespace tally {

/// The stored tensor of a name.
using FindStored = std::function<const StoredTensor&(const std::string& name)>;
/// Puts one parameter together from its parts, row-major (out, in). `out` has its numel() elements.
void read_source(const WeightSource& source, const FindStored& find, std::span<float> out);
void read_source(const WeightSource& source, const FindStored& find, std::span<double> out);

/// The weights of one model on disk, checked against its configuration: every parameter is there
/// with its shape, and nothing is there that the model would leave unused. Values are read when
/// asked for.
class Checkpoint {
 public:
  /// A Hugging Face folder: config.json with weights in one file or in shards. A tied model may
  /// carry lm_head.weight only if it equals the embedding. Throws Error by the tensor's name.
  static Checkpoint hugging_face(const std::string& folder);

  /// A GGUF file (models/gguf_config.h), quantised weights as float32.
  static Checkpoint gguf(const std::string& path);

  /// Weights under our own names, for a configuration that is known (and resolved).
  static Checkpoint own(const ModelConfig&, const std::string& path);

  const ModelConfig& config() const { return config_; }
  /// In the order of parameter_specs().
  const std::vector<WeightSource>& sources() const { return sources_; }

  /// Reads one parameter, row-major (out, in), under our name. F32, F16 and BF16 are exact in
  /// float; F64 needs double. Throws Error if there is no such parameter or its size differs.
  void read(std::string_view parameter, std::span<float> out) const;
  void read(std::string_view parameter, std::span<double> out) const;

 private:
  Checkpoint(ModelConfig, std::vector<WeightSource>, WeightFiles);
  template <class T>
  void read_parts(std::string_view parameter, std::span<T> out) const;

  ModelConfig config_;
  std::vector<WeightSource> sources_;
  WeightFiles files_;
};

}  // namespace tally
