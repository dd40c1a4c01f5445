#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf_file.h"
#include "models/safetensor_file.h"

namespace tally {

/// The weights of a model, wherever they lie: one safetensors or GGUF file, or a folder
/// with model.safetensors or with model.safetensors.index.json and its shards.
class WeightFiles {
 public:
  /// Opens and checks every file. The index of a sharded model may only name files inside the
  /// folder: anything else is refused before a shard is opened. Throws Error by name if a shard is
  /// missing, if index and shards disagree or if two shards hold the same tensor.
  explicit WeightFiles(const std::string& path);

  /// Of the file, the index or the folder, for errors.
  const std::string& path() const { return path_; }
  /// nullptr if there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  std::vector<std::string> names() const;
  /// nullptr unless this is a GGUF file.
  const GgufFile* gguf() const { return ggufs_.empty() ? nullptr : &ggufs_[0]; }

 private:
  void open_shards(const std::string& folder, const std::string& index);

  std::string path_;
  std::vector<SafetensorFile> files_;
  std::vector<GgufFile> ggufs_;  // one or none
};

/// Copies a stored tensor into floats, row-major. F32, F16 and BF16 are read exactly, quantised
/// blocks as models/block_types.h says; every other type is refused by name, F64 too: narrowing is
/// never silent. `out` has numel() elements.
void read_values(const StoredTensor&, std::span<float> out);
/// The same into doubles; reads F64 as well.
void read_values(const StoredTensor&, std::span<double> out);
/// Integers of any width, as far as they fit.
void read_values(const StoredTensor&, std::span<int64_t> out);

/// True if both hold the same type, shape and bytes.
bool same_content(const StoredTensor&, const StoredTensor&);

}  // namespace tally
