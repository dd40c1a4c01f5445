// Any bytes as a file of ranks, or, parted by a zero, as vocab.json and merges.txt: refused with an
// Error, or text comes back from its ids.
#include "core/error.h"
#include "data/tokenizer_io.h"
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tally::TokenizerLoadOptions options{.pattern = "none"};  // no regular expression to compile
  const size_t zero = text.find('\0');
  try {
    tally::fuzz::round_trip(
        zero == std::string_view::npos
            ? tally::parse_tiktoken(text, "fuzz", options)
            : tally::parse_vocab_merges({std::string(text.substr(0, zero)), "vocab"},
                                        {std::string(text.substr(zero + 1)), "merges"}, options),
        tally::fuzz::kText);
  } catch (const tally::Error&) {
  }
  return 0;
}
