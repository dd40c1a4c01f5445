#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/generate.h"

namespace tally {

/// Logits (1,V) of the token after `ids` (1,T), which follow those given before.
using NextLogits = std::function<Tensor(const Tensor& ids)>;

/// Throws Error for options that mean nothing.
void check_options(const GenerateOptions& options);
/// Token by token after `prompt`, which is not empty, until something ends it; see generate_ids.
/// `context`: what the model can hold, prompt included.
GenerateStats continue_ids(const NextLogits& next, int64_t context, Device device,
                           std::span<const int64_t> prompt, const GenerateOptions& options,
                           std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit);
/// One row of logits, as sampling takes them.
std::vector<float> to_floats(const Tensor& logits);
/// Error where the tokenizer has ids that the model has not.
void check_vocabulary(const nn::LanguageModel& model, const Tokenizer& tokenizer);

/// Text held back while it may be the beginning of a stop text.
class StopWatch {
 public:
  explicit StopWatch(std::vector<std::string> stops);
  /// What of the text so far can be shown; sets `done` at a stop text.
  std::string push(const std::string& piece, bool& done);
  std::string finish() { return std::exchange(held_, {}); }

 private:
  size_t longest_beginning() const;
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace tally
