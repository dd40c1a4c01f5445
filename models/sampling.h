#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tally {

/// How the next token is drawn from logits. Order: temperature, top_k, min_p, top_p.
struct SamplingOptions {
  double temperature = 1;  // 0: the most likely token, lowest id on ties
  int64_t top_k = 0;       // 0: all; else the k most likely
  double top_p = 1;        // the smallest set of most likely tokens whose probability reaches p
  double min_p = 0;        // drop what is less likely than min_p times the most likely

  /// Throws Error for values that mean nothing: a negative temperature, top_p outside 0..1, NaN.
  void check() const;
};

/// Probabilities of all tokens after the options, in the order of their ids; they add up to 1.
/// Throws Error if a logit is NaN or all are -inf.
std::vector<double> sampling_probabilities(std::span<const float> logits,
                                           const SamplingOptions& options);

/// The token that number `uniform` in [0, 1) picks.
int64_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace tally
