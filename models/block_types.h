#pragma once
#include <span>

#include "models/safetensor_file.h"

namespace tally {

/// The values of blocks in one of ggml's quantised types, as float32 arithmetic gives them: of 32
/// values with one scale d each (Q4_0, Q5_0, Q8_0: d q) and a minimum (Q4_1, Q5_1: d q + m), of 256
/// with scales of parts of 32 (Q4_K, Q5_K: d s q - d' m') or of 16 (Q6_K: d s q). d is an f16.
/// `blocks` holds whole blocks, `out` their values in order. Every product is exact in float32.
void dequantise(StoredType, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace tally
