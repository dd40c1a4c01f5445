#pragma once
#include <cstdint>
#include <span>

namespace tally {

/// Where the ids of one batch are written to, row by row.
struct BatchSpans {
  std::span<int64_t> ids, targets;  // (B,T)
  std::span<int64_t> source;        // (B,S), of an encoder-decoder; else empty
};

}  // namespace tally
