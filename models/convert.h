#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"

namespace tally {

/// One parameter of a converted model, as a function of the same parameter of the original.
///   before, result: row-major, shapes as parameter_specs of either configuration
using ConvertParameter =
    std::function<std::vector<float>(const std::string& name, std::span<const float> before)>;

/// A configuration that was changed together with its weights.
struct Conversion {
  ModelConfig config;  // of the result
  ConvertParameter parameter;
};

/// Fewer heads of keys and values: each new one is the mean of the old ones that it stands for, which
/// keeps most of what a model can do and is trained on from there. Ainslie et al. 2023,
/// arXiv:2305.13245, section 2.1; lecture claim L95. Throws Error unless kv_heads divides the heads of
/// keys that there are, or where keys have a norm over all heads.
Conversion with_kv_heads(const ModelConfig& config, int64_t kv_heads);

/// The same function with rotary pairs that lie in the other order: the rows of each head of queries
/// and keys are permuted, half-split (i, i + R/2) to interleaved (2i, 2i + 1) and back. Lecture claim
/// L49. Throws Error unless positions are rotary and the order is another one.
Conversion with_rope_layout(const ModelConfig& config, RopeLayout layout);

}  // namespace tally
