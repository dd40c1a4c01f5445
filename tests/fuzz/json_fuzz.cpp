// Any bytes: parse_json gives a document or an Error, and what it gives survives printing.
#include <cstdlib>

#include "core/error.h"
#include "data/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tally::Json document = tally::parse_json(text, "fuzz");
    if (tally::parse_json(document.dump(), "again") != document) std::abort();
  } catch (const tally::Error&) {
  }
  return 0;
}
