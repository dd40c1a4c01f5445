// Any bytes: a GGUF file is refused with an Error, or every tensor lies inside it, its values can be
// read, and what its entries describe is a model and a tokenizer or an Error.
#include <cstdlib>

#include "core/error.h"
#include "data/tokenizer_io.h"
#include "models/gguf_file.h"
#include "models/weight_files.h"

namespace {

void read_tensors(const tally::Gguf& file, std::span<const std::byte> bytes) {
  size_t total = 0;
  for (const tally::StoredTensor& tensor : tally::gguf_tensors(file, "fuzz")) {
    const auto size = tally::stored_bytes(tensor.type, tensor.numel());
    if (size != tensor.data.size()) std::abort();
    if (tensor.data.data() < bytes.data() ||
        tensor.data.data() + size > bytes.data() + bytes.size())
      std::abort();
    total += size;
    std::vector<float> values(static_cast<size_t>(tensor.numel()));
    try {
      tally::read_values(tensor, std::span<float>(values));
    } catch (const tally::Error&) {  // integers and f64
    }
  }
  if (total > bytes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const tally::Gguf file = tally::parse_gguf(bytes, "fuzz");
    try {
      read_tensors(file, bytes);
    } catch (const tally::Error&) {
    }
    const tally::Tokenizer tokenizer = tally::parse_gguf_tokenizer(file, "fuzz");
    tokenizer.decode(tokenizer.encode("The cat's 1234 \xE4\xB8\xAD\xFF  \r\n"));
  } catch (const tally::Error&) {
  }
  return 0;
}
