// Any bytes: parse_json gives a document or an Error, and what it gives survives printing.
#include <cstdlib>

#include "core/error.h"
#include "data/json.h"
#include "models/config_json.h"
#include "models/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tally::Json document = tally::parse_json(text, "fuzz");
    if (tally::parse_json(document.dump(), "again") != document) std::abort();
  } catch (const tally::Error&) {
  }
  try {
    tally::RunConfig config = tally::run_config_from_json(text, "fuzz");
    config.resolve_and_check("fuzz");
    if (tally::run_config_from_json(tally::to_json_text(config), "again") != config) std::abort();
  } catch (const tally::Error&) {
  }
  try {
    tally::hf_config_from_json(text, "fuzz").config.check();
  } catch (const tally::Error&) {
  }
  return 0;
}
