// Any bytes as a file of token ids, the first byte says which, with the JSON beside it parted off by
// its length in the second: refused with an Error, or every id can be read.
#include "core/error.h"
#include "data/token_file.h"
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::optional<std::string> json;
  if (data[1] > 0) json = std::string(rest.substr(0, data[1]));
  rest.remove_prefix(std::min<size_t>(data[1], rest.size()));
  const auto bytes = std::as_bytes(std::span(rest.data(), rest.size()));
  tally::TokenFileOptions options;
  if (data[0] & 2) options.width = data[0] & 4 ? tally::TokenWidth::u32 : tally::TokenWidth::u16;
  if (data[0] & 8) options.vocab_size = 256;
  try {
    const auto file =
        tally::TokenFile::parse(bytes, data[0] & 1 ? "fuzz.bin" : "fuzz.npy", json, options);
    tally::fuzz::require(file.size() * int64_t(file.width()) <= int64_t(size), "more than it has");
    const int64_t below = file.meta().vocab_size;
    tally::fuzz::require(below >= 0, "a negative vocabulary");
    std::vector<int64_t> ids(static_cast<size_t>(file.size()));
    file.read(0, ids);
    for (const int64_t id : ids)
      tally::fuzz::require(below == 0 || id < below, "an id above the vocabulary");
  } catch (const tally::Error&) {
  }
  return 0;
}
