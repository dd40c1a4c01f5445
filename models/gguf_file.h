#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "data/gguf.h"
#include "models/safetensor_file.h"

namespace tally {

/// The tensors of a GGUF file as stored tensors whose spans point into it: F32, F16, BF16, F64,
/// integers, and the quantised types of StoredType. Each must lie where the one before it ends, but
/// for the alignment, and the last at the end of the file. Throws Error beginning with `origin` and
/// naming the tensor; an element type that is not read is named.
std::vector<StoredTensor> gguf_tensors(const Gguf&, const std::string& origin);

/// A GGUF file, mapped into memory and checked.
class GgufFile {
 public:
  explicit GgufFile(const std::string& path);
  const Gguf& content() const { return content_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// nullptr if there is none of that name.
  const StoredTensor* find(std::string_view name) const;

 private:
  MappedFile file_;
  Gguf content_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, size_t> index_;
};

}  // namespace tally
