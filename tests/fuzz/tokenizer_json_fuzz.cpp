// Any bytes as a tokenizer.json: refused with an Error, or text comes back from its ids and saving
// gives the same tokenizer.
#include "core/error.h"
#include "data/tokenizer_io.h"
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tally::Tokenizer tokenizer = tally::parse_tokenizer_json(text, "fuzz");
    tally::fuzz::round_trip(tokenizer, tally::fuzz::kText);
    const std::string saved = tally::tokenizer_json(tokenizer, "saved");
    tally::fuzz::require(tally::parse_tokenizer_json(saved, "saved").hash() == tokenizer.hash(),
                         "saved otherwise");
  } catch (const tally::Error&) {
  }
  return 0;
}
