#include "models/generate.h"

#include <algorithm>
#include <chrono>

#include "core/random.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

/// Text held back while it may be the beginning of a stop text.
class StopWatch {
 public:
  explicit StopWatch(std::vector<std::string> stops) : stops_(std::move(stops)) {
    for (const std::string& s : stops_)
      check(!s.empty(), "generate: a stop text must not be empty");
  }
  /// What of the text so far can be shown; sets `done` at a stop text.
  std::string push(const std::string& piece, bool& done) {
    held_ += piece;
    size_t first = std::string::npos;
    for (const std::string& s : stops_) first = std::min(first, held_.find(s));
    done = first != std::string::npos;
    size_t certain = done ? first : held_.size() - longest_beginning();
    std::string out = held_.substr(0, certain);
    held_.erase(0, certain);
    return out;
  }
  std::string finish() { return std::exchange(held_, {}); }

 private:
  // Length of the longest end of the held text that begins a stop text.
  size_t longest_beginning() const {
    size_t longest = 0;
    for (const std::string& s : stops_) {
      for (size_t n = std::min(s.size() - 1, held_.size()); n > longest; --n) {
        if (held_.ends_with(std::string_view(s).substr(0, n))) longest = n;
      }
    }
    return longest;
  }
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace

GenerateStats generate_ids(nn::Decoder& model, std::span<const int64_t> prompt,
                           const GenerateOptions& options, std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit) {
  options.sampling.check();
  const int64_t length = static_cast<int64_t>(prompt.size()), context = model.options().context;
  check(length > 0,
        "generate: the prompt is empty, and the tokenizer has no end-of-text token to begin from; "
        "give a prompt");
  check(length <= context, "generate: the prompt has ", length,
        " tokens, the model's context holds ", context, "; shorten it");
  check(options.max_new_tokens >= 0, "generate: max_new_tokens must not be negative; got ",
        options.max_new_tokens);
  GenerateStats stats;
  stats.prompt_tokens = length;
  stats.why = "length";
  nn::KVCache cache =
      model.make_cache(1, length + std::min(context - length, options.max_new_tokens));
  std::vector<int64_t> next(prompt.begin(), prompt.end());
  auto start = Clock::now();
  while (stats.new_tokens < options.max_new_tokens) {
    if (cache.length() + static_cast<int64_t>(next.size()) > context) {
      stats.why = "context";
      break;
    }
    const Tensor logits = model.next_logits(
        from_host<int64_t>(next, {1, static_cast<int64_t>(next.size())}, model.device()), cache);
    const double uniform = uniform_at(options.seed, 0, static_cast<uint64_t>(stats.new_tokens));
    const int64_t id = sample_token(to_floats(logits), options.sampling, uniform);
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

GenerateStats generate_text(nn::Decoder& model, const Tokenizer& tokenizer,
                            const std::string& prompt, const GenerateOptions& options,
                            const std::function<void(std::string_view)>& emit) {
  check(tokenizer.vocab_size() <= model.options().vocab, "generate: the tokenizer has ",
        tokenizer.vocab_size(), " tokens, the model ", model.options().vocab,
        "; this is another model's tokenizer");
  std::vector<int64_t> ids;
  for (auto id : tokenizer.spec().prefix) ids.push_back(static_cast<int64_t>(id));
  for (auto id : tokenizer.encode(prompt)) ids.push_back(static_cast<int64_t>(id));
  std::optional<int64_t> end;
  if (tokenizer.eot()) end = static_cast<int64_t>(*tokenizer.eot());
  if (ids.empty() && end) ids.push_back(*end);
  StreamDecoder decoder(tokenizer);
  StopWatch stop(options.stop);
  bool stopped = false;
  const GenerateStats stats = generate_ids(model, ids, options, end, [&](int64_t id) {
    const std::string text = stop.push(decoder.push(id), stopped);
    if (!text.empty()) emit(text);
    return !stopped;
  });
  if (!stopped) {
    const std::string rest = stop.push(decoder.finish(), stopped) + (stopped ? "" : stop.finish());
    if (!rest.empty()) emit(rest);
  }
  return stats;
}

}  // namespace tally
