// Any bytes as a checkpoint's files, parted by zeros: manifest.json, state.json, then the weights.
// What the manifest does not say of them bit for bit, and any other manifest, is an Error.
#include <cstdlib>

#include "core/error.h"
#include "models/manifest.h"
#include "models/run_directory.h"

namespace {

std::string_view up_to_zero(std::string_view& rest) {
  const size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view manifest = up_to_zero(rest), state = up_to_zero(rest);
  try {
    if (tally::RunDirectory::parse_state(state, "fuzz").step < 0) std::abort();
  } catch (const tally::Error&) {
  }
  const tally::NamedBytes files[] = {{"state.json", bytes_of(state)},
                                     {"model.safetensors", bytes_of(rest)}};
  try {
    tally::check_manifest(manifest, "fuzz", files);
  } catch (const tally::Error&) {
    return 0;
  }
  // It vouches for these bytes, so for no fewer.
  for (const tally::NamedBytes& file : files) {
    const tally::NamedBytes cut = {file.name, file.bytes.first(file.bytes.size() - 1)};
    try {
      tally::check_manifest(manifest, "fuzz", {&cut, 1});
    } catch (const tally::Error&) {
      continue;
    }
    std::abort();
  }
  return 0;
}
