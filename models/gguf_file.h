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

/// A GGUF file, mapped into memory and checked. Of a model in parts, PREFIX-00001-of-00003.gguf and
/// its like, the first is named: it has the metadata, and the tensors of all parts are found here.
/// Throws Error by name where a part is missing or is not the one its name says, where two hold the
/// same tensor, or where their number is not what the first says.
class GgufFile {
 public:
  explicit GgufFile(const std::string& path);
  /// Of the first part.
  const Gguf& content() const { return parts_[0].content; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// nullptr if there is none of that name.
  const StoredTensor* find(std::string_view name) const;

 private:
  struct Part {
    explicit Part(const std::string& path);
    MappedFile file;
    Gguf content;
  };
  void open_others(const std::string& path, int64_t count);

  std::vector<Part> parts_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, size_t> index_;
};

}  // namespace tally
