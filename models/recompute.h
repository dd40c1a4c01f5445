#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tally {

/// Which layers a training step computes again in the backward pass, from the text of
/// train.recompute: "none", "all", or layers and ranges as "0-5,8" (the first layer is 0).
/// True by layer. Error, beginning with `where`, for another text or a layer that is not there.
std::vector<bool> recompute_layers(const std::string& text, int64_t layers,
                                   const std::string& where = "train");

/// The text that names the first `count` of `layers` layers.
std::string recompute_first(int64_t count, int64_t layers);

}  // namespace tally
