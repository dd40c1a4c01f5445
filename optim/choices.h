#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace tally::optim {

/// The optimizers, by name.
enum class OptimizerKind : uint8_t {
  adamw,
  adam,
  sgd,
  lion,
  adafactor,
  adafactor_t5,
  muon,
  shampoo,
  soap,
  adagrad,
  rmsprop,
  nadam
};
std::span<const std::string_view> enum_names(OptimizerKind);

/// How long Muon's step is: times sqrt(max(1, rows / columns)), of the original release, or times
/// 0.2 sqrt(max(rows, columns)), so that its entries are as large as AdamW's and one learning rate
/// serves both (Liu et al. 2025, arXiv:2502.16982).
enum class MuonScaling : uint8_t { original, match_rms };
std::span<const std::string_view> enum_names(MuonScaling);

}  // namespace tally::optim
