#include "models/generate_loop.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/random.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::vector<float> to_floats(const Tensor& logits) {
  if (logits.dtype() == DType::f32) return to_host<float>(logits);
  const auto narrowed = [](const auto& values) {
    std::vector<float> out(values.size());
    std::ranges::transform(values, out.begin(), [](auto v) { return static_cast<float>(v); });
    return out;
  };
  return logits.dtype() == DType::f64 ? narrowed(to_host<double>(logits))
                                      : narrowed(to_host<bf16>(logits));
}

void check_options(const GenerateOptions& options) {
  options.sampling.check();
  check(options.max_new_tokens >= 0, "generate: max_new_tokens must not be negative; got ",
        options.max_new_tokens);
}

void check_vocabulary(const nn::LanguageModel& model, const Tokenizer& tokenizer) {
  check(tokenizer.vocab_size() <= model.vocab(), "generate: the tokenizer has ",
        tokenizer.vocab_size(), " tokens, the model ", model.vocab(),
        "; this is another model's tokenizer");
}

GenerateStats continue_ids(const NextLogits& next_logits, int64_t context, Device device,
                           std::span<const int64_t> prompt, const GenerateOptions& options,
                           std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit) {
  GenerateStats stats;
  stats.why = "length";
  std::vector<int64_t> next(prompt.begin(), prompt.end());
  int64_t held = 0;
  auto start = Clock::now();
  while (stats.new_tokens < options.max_new_tokens) {
    const auto count = static_cast<int64_t>(next.size());
    if (held + count > context) {
      stats.why = "context";
      break;
    }
    const Tensor logits = next_logits(from_host<int64_t>(next, {1, count}, device));
    held += count;
    const double uniform = uniform_at(options.seed, 0, static_cast<uint64_t>(stats.new_tokens));
    std::vector<float> row = to_floats(logits);
    if (options.never >= 0)
      row[static_cast<size_t>(options.never)] = -std::numeric_limits<float>::infinity();
    const int64_t id = sample_token(row, options.sampling, uniform);
    (stats.new_tokens == 0 ? stats.prefill_seconds : stats.decode_seconds) += seconds_since(start);
    start = Clock::now();
    ++stats.new_tokens;
    if (end_of_text && id == *end_of_text) {
      stats.why = "end of text";
      break;
    }
    if (!emit(id)) {
      stats.why = "stop";
      break;
    }
    next = {id};
  }
  return stats;
}

StopWatch::StopWatch(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_) check(!s.empty(), "generate: a stop text must not be empty");
}

std::string StopWatch::push(const std::string& piece, bool& done) {
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& s : stops_) first = std::min(first, held_.find(s));
  done = first != std::string::npos;
  const size_t certain = done ? first : held_.size() - longest_beginning();
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

// Length of the longest end of the held text that begins a stop text.
size_t StopWatch::longest_beginning() const {
  size_t longest = 0;
  for (const std::string& s : stops_) {
    for (size_t n = std::min(s.size() - 1, held_.size()); n > longest; --n) {
      if (held_.ends_with(std::string_view(s).substr(0, n))) longest = n;
    }
  }
  return longest;
}

}  // namespace tally
