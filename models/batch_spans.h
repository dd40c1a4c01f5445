#pragma once
#include <cstdint>
#include <span>

namespace tally {

/// Where the ids of one batch are written to, row by row.
struct BatchSpans {
  std::span<int64_t> ids, targets;  // (B,T)
  std::span<int64_t> source = {};   // (B,S), of an encoder-decoder; else empty
  std::span<uint8_t> mask = {};     // (B,S): 1 = a token of the source, 0 = filler; empty: all are
};

}  // namespace tally
