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

/// What is updated of a parameter in bf16: a master in f32 that the parameter is rounded from, or the
/// parameter alone, rounded up or down at random so that the mean of many steps is right
/// (core/ops/stochastic_round.h).
enum class Bf16Update : uint8_t { masters, stochastic };
std::span<const std::string_view> enum_names(Bf16Update);

}  // namespace tally::optim
