// Any bytes as a run's config.json, or Hugging Face's: refused with an Error, or a model's fields that
// hold together; a run's survive printing.
#include <cstdlib>

#include "core/error.h"
#include "models/config_json.h"
#include "models/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
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
