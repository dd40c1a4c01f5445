#pragma once
#include <cstdint>
#include <vector>

namespace tally {

/// How the frequencies of rotary pairs are changed for texts longer than those of the training.
/// With f_i = base^(-2i/R), R elements turning:
enum class RopeScalingKind : uint8_t {
  none,
  linear,        ///< f_i / factor: positions squeezed. Chen et al. 2023, arXiv:2306.15595
  ntk,           ///< base times factor^(R/(R-2)): the slowest pair as linear, the fastest unchanged
  dynamic_ntk,   ///< the same with the factor that a text of this length needs; see rope_turns
  yarn,          ///< fast pairs unchanged, slow ones / factor. Peng et al. 2023, arXiv:2309.00071
  llama3,        ///< the same with bounds given as wavelengths. arXiv:2407.21783, Llama 3.1
  longrope,      ///< f_i / a factor of its own for each pair. Ding et al. 2024, arXiv:2402.13753
  proportional,  ///< the first `fraction` of the pairs turn, the others stand still (p-RoPE)
};

/// What a kind needs besides the base; the defaults are those of published models.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;             ///< how many times longer; for longrope: of the whole context
  int64_t original_context = 0;  ///< tokens of a text in the training before the scaling
  double low_frequency = 1, high_frequency = 4;  ///< llama3: turns within the original context
  double beta_fast = 32, beta_slow = 1;          ///< yarn: the same
  bool truncate = true;                          ///< yarn: the bounds are whole pairs
  /// yarn and longrope: what cosines and sines are multiplied by; 0: the paper's value.
  double attention_factor = 0;
  /// yarn in DeepSeek-V2 and V3 (arXiv:2405.04434): weights of the logarithm in the attention
  /// factor and in the softmax scale; 0: not used.
  double mscale = 0, mscale_all_dim = 0;
  std::vector<double> short_factors, long_factors;  ///< longrope: one for each pair
  double fraction = 1;                              ///< proportional

  bool operator==(const RopeScaling&) const = default;
};

/// How a head turns: turns per position of each pair (in radians), and what all cosines and sines
/// are multiplied by.
struct RopeTurns {
  std::vector<double> frequencies;
  double attention_factor = 1;
  bool operator==(const RopeTurns&) const = default;
};

/// In which arithmetic frequencies and angles are formed. In single precision angles at position
/// 131071 are off by 4e-3 to 8e-3: `float32` is for comparing with programs that do that.
enum class RopeArithmetic : uint8_t { float64, float32 };

/// The turns of `dim` elements in a text of `length` tokens. Only dynamic_ntk (above its original
/// context the factor follows the length) and longrope (there the long factors hold) look at the
/// length. Error for an odd dim, a base or factor without a meaning, factors of the wrong number.
RopeTurns rope_turns(int64_t dim, double base, const RopeScaling& scaling = {}, int64_t length = 0,
                     RopeArithmetic arithmetic = RopeArithmetic::float64);

/// True where the turns depend on the length of the text.
inline bool follows_length(RopeScalingKind kind) {
  return kind == RopeScalingKind::dynamic_ntk || kind == RopeScalingKind::longrope;
}

/// What DeepSeek multiplies the softmax scale by: (0.1 mscale_all_dim ln(factor) + 1)^2 for yarn
/// with mscale_all_dim, else 1.
double rope_softmax_scale(const RopeScaling& scaling);

}  // namespace tally
