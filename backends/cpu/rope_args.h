#pragma once
#include <cstdint>

namespace tally::cpu {

/// One turn of one head, elements side by side: pairs (i, i + half), or (2i, 2i + 1) if
/// interleaved; elements 2 half .. size - 1 pass. `sign` is -1 for the way back. y may be x.
struct RopeTurn {
  int64_t half, size;
  bool interleaved, add;
  float sign;
};

}  // namespace tally::cpu
