#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "data/token_file.h"
#include "models/objective.h"
#include "nn/language_model.h"

namespace tally {

/// Loss over a split: of the next tokens, or of those that the objective hides.
struct Evaluation {
  double loss = 0;  // nats a token
  double bits_per_byte = 0;
  int64_t tokens = 0, bytes = 0;
  double perplexity() const;
};

/// Loss of tokens under a model, `batch` windows of `context` tokens at a time, in the order of the
/// text; of the first `batches` alone, where that is not 0. `progress` is called after each with the
/// tokens that are done and all of them. Error where none is a target.
Evaluation evaluate(nn::LanguageModel& model, const Objective& objective, const TokenFile& tokens,
                    std::span<const uint32_t> byte_lengths, int64_t batch, int64_t context,
                    int64_t batches = 0,
                    const std::function<void(int64_t done, int64_t all)>& progress = {});

}  // namespace tally
