#include "models/infill.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/random.h"
#include "models/generate_loop.h"

namespace tally {
namespace {

std::vector<int64_t> encoded(const Tokenizer& tokenizer, const std::string& prompt) {
  const auto ids = tokenizer.wrap(tokenizer.encode(prompt, SpecialTokens::allowed));
  return {ids.begin(), ids.end()};
}

bool is_sentinel(const ObjectiveTokens& tokens, int64_t id) {
  return id <= tokens.first_sentinel && id > tokens.first_sentinel - tokens.sentinels;
}

// The sentinel with which the answer ends: one less than the prompt's least; -1 without any.
int64_t closing_sentinel(const ObjectiveTokens& tokens, std::span<const int64_t> source) {
  int64_t least = -1;
  for (const int64_t id : source) {
    if (is_sentinel(tokens, id)) least = least < 0 ? id : std::min(least, id);
  }
  return least < 0 ? -1 : least - 1;
}

}  // namespace

GenerateStats generate_ids(nn::EncoderDecoder& model, std::span<const int64_t> source,
                           int64_t start, const GenerateOptions& options,
                           std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit) {
  check_options(options);
  const int64_t length = static_cast<int64_t>(source.size()), context = model.context();
  check(length > 0, "generate: there is no text to read; give a prompt");
  check(length <= context, "generate: the prompt has ", length,
        " tokens, the model's context holds ", context, "; shorten it");
  const Tensor ids = from_host<int64_t>(source, {1, length}, model.device());
  std::optional<nn::StackCache> cache;
  const auto next = [&](const Tensor& fresh) {
    const PauseTape values_only;
    if (!cache)
      cache = model.make_cache(model.encode(ids),
                               std::min(context, std::max<int64_t>(options.max_new_tokens, 1)));
    return model.next_logits(fresh, *cache);
  };
  GenerateStats stats =
      continue_ids(next, context, model.device(), std::span(&start, 1), options, end_of_text, emit);
  stats.prompt_tokens = length;
  return stats;
}

std::vector<int64_t> filled_spans(std::span<const int64_t> source, std::span<const int64_t> written,
                                  const ObjectiveTokens& tokens) {
  std::vector<int64_t> filled;
  for (const int64_t id : source) {
    const auto at = is_sentinel(tokens, id) ? std::ranges::find(written, id) : written.end();
    if (at == written.end()) {
      filled.push_back(id);
      continue;
    }
    const auto end = std::find_if(at + 1, written.end(),
                                  [&](int64_t next) { return is_sentinel(tokens, next); });
    filled.insert(filled.end(), at + 1, end);
  }
  return filled;
}

Written generate_text(nn::EncoderDecoder& model, const Tokenizer& tokenizer,
                      const ObjectiveTokens& tokens, const std::string& prompt,
                      const GenerateOptions& options,
                      const std::function<void(std::string_view)>& emit) {
  return generate_text(model, tokenizer, tokens, encoded(tokenizer, prompt), options, emit);
}

Written generate_text(nn::EncoderDecoder& model, const Tokenizer& tokenizer,
                      const ObjectiveTokens& tokens, std::span<const int64_t> source,
                      const GenerateOptions& options,
                      const std::function<void(std::string_view)>& emit) {
  check_vocabulary(model, tokenizer);
  check(tokens.start >= 0,
        "generate: an encoder-decoder begins to write from <pad>, its padding_id or the end of "
        "text; the tokenizer and the model have none of these");
  const int64_t closing = closing_sentinel(tokens, source);
  std::optional<int64_t> end;
  if (tokenizer.eot()) end = static_cast<int64_t>(*tokenizer.eot());
  StreamDecoder decoder(tokenizer, false);
  StopWatch stop(options.stop);
  Written result;
  std::vector<int64_t> written;
  bool stopped = false, closed = false;
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (!text.empty()) emit(text);
  };
  result.stats = generate_ids(model, source, tokens.start, options, end, [&](int64_t id) {
    closed = closing >= 0 && id == closing;
    if (closed) return false;
    written.push_back(id);
    show(stop.push(decoder.push(id), stopped));
    return !stopped;
  });
  if (closed) result.stats.why = "all filled";
  if (!stopped) show(stop.push(decoder.finish(), stopped) + (stopped ? "" : stop.finish()));
  if (closing >= 0) result.filled = tokenizer.decode(filled_spans(source, written, tokens));
  return result;
}

Unmasked fill_masks(nn::Encoder& model, const Tokenizer& tokenizer, const ObjectiveTokens& tokens,
                    const std::string& prompt, const GenerateOptions& options) {
  check(tokens.mask >= 0, "generate: an encoder fills in masks; the tokenizer has no [MASK]");
  std::vector<int64_t> ids = encoded(tokenizer, prompt);
  check(std::ranges::count(ids, tokens.mask) > 0,
        "generate: an encoder fills in masks, and the prompt has none; put ",
        tokenizer.token_bytes(tokens.mask), " where a token is to be guessed");
  return fill_masks(model, tokenizer, tokens, std::move(ids), options);
}

Unmasked fill_masks(nn::Encoder& model, const Tokenizer& tokenizer, const ObjectiveTokens& tokens,
                    std::vector<int64_t> ids, const GenerateOptions& options) {
  check_vocabulary(model, tokenizer);
  check_options(options);
  const auto length = static_cast<int64_t>(ids.size());
  check(length <= model.context(), "generate: the prompt has ", length,
        " tokens, the model's context holds ", model.context(), "; shorten it");
  const PauseTape values_only;
  const Tensor logits =
      model.batch_logits({from_host<int64_t>(ids, {1, length}, model.device()), {}, {}, {}});
  Unmasked result;
  for (int64_t i = 0; i < length; ++i) {
    auto& id = ids[static_cast<size_t>(i)];
    if (id != tokens.mask) continue;
    const Tensor row = contiguous(logits.narrow(1, i, 1)).reshape({1, model.vocab()});
    id = sample_token(to_floats(row), options.sampling,
                      uniform_at(options.seed, 0, result.tokens.size()));
    result.tokens.emplace_back(tokenizer.decode(std::span(&std::as_const(id), 1)));
  }
  result.text = tokenizer.decode(ids, true);
  return result;
}

}  // namespace tally
