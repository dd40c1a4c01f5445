#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "models/sampling.h"
#include "nn/decoder.h"

namespace tally {

struct GenerateOptions {
  int64_t max_new_tokens = 100;
  SamplingOptions sampling;
  std::vector<std::string> stop;  // the text ends before the first of these
  uint64_t seed = 1;
  int64_t never = -1;  // an id that is not to be chosen; -1: none
};

struct GenerateStats {
  int64_t prompt_tokens = 0, new_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
  std::string why;  // what ended it: "length", "end of text", "stop", "context"
};

/// Continues token ids with the KV cache: the logits at every position are those of the full pass.
/// Calls `emit` with each new id; a false answer ends it. Throws Error for an empty prompt or one
/// beyond the context.
GenerateStats generate_ids(nn::Decoder& model, std::span<const int64_t> prompt,
                           const GenerateOptions& options, std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit);

/// The same for text: calls `emit` with pieces of the continuation as they become certain
/// (characters whole, no part of a stop text). An empty prompt begins from the end-of-text token
/// where the tokenizer has one, else it is an Error.
GenerateStats generate_text(nn::Decoder& model, const Tokenizer& tokenizer,
                            const std::string& prompt, const GenerateOptions& options,
                            const std::function<void(std::string_view)>& emit);

}  // namespace tally
