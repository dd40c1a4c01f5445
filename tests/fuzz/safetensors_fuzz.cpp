// Any bytes: a weight file is refused with an Error, or every tensor lies inside it and the tensors
// add up to its data.
#include <cstdlib>

#include "core/error.h"
#include "models/safetensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    size_t total = 0;
    for (const tally::StoredTensor& tensor : tally::parse_safetensors(bytes, "fuzz").tensors) {
      if (!tensor.data.empty() && (tensor.data.data() < bytes.data() ||
                                   tensor.data.data() + tensor.data.size() > bytes.data() + size)) {
        std::abort();
      }
      if (size_t(tensor.numel()) * tally::bytes_of(tensor.type) != tensor.data.size()) std::abort();
      total += tensor.data.size();
    }
    if (total > size) std::abort();
  } catch (const tally::Error&) {
  }
  return 0;
}
