#include "models/generate.h"

#include <algorithm>

#include "models/generate_loop.h"

namespace tally {

GenerateStats generate_ids(nn::Decoder& model, std::span<const int64_t> prompt,
                           const GenerateOptions& options, std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit) {
  check_options(options);
  const int64_t length = static_cast<int64_t>(prompt.size()), context = model.options().context;
  check(length > 0,
        "generate: the prompt is empty, and the tokenizer has no end-of-text token to begin from; "
        "give a prompt");
  check(length <= context, "generate: the prompt has ", length,
        " tokens, the model's context holds ", context, "; shorten it");
  nn::KVCache cache =
      model.make_cache(1, length + std::min(context - length, options.max_new_tokens));
  const auto next = [&](const Tensor& ids) { return model.next_logits(ids, cache); };
  GenerateStats stats =
      continue_ids(next, context, model.device(), prompt, options, end_of_text, emit);
  stats.prompt_tokens = length;
  return stats;
}

GenerateStats generate_text(nn::Decoder& model, const Tokenizer& tokenizer,
                            const std::string& prompt, const GenerateOptions& options,
                            const std::function<void(std::string_view)>& emit) {
  check_vocabulary(model, tokenizer);
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
