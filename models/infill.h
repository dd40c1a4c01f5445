#pragma once
#include <string>
#include <vector>

#include "models/generate.h"
#include "models/objective.h"
#include "nn/encoder.h"
#include "nn/encoder_decoder.h"

// What models with an encoder write: an encoder-decoder a text for the text it reads, or what is
// missing in it; an encoder what is hidden.
namespace tally {

/// Writes token ids for those of `source`, from `start` on, with the KV cache of both attentions: the
/// logits at every position are those of the full pass. Calls `emit` with each new id; a false answer
/// ends it. Throws Error for an empty source or one beyond the context.
GenerateStats generate_ids(nn::EncoderDecoder& model, std::span<const int64_t> source,
                           int64_t start, const GenerateOptions& options,
                           std::optional<int64_t> end_of_text,
                           const std::function<bool(int64_t)>& emit);

/// `source` with what `written` says in place of each sentinel; one that it does not speak of stays.
std::vector<int64_t> filled_spans(std::span<const int64_t> source, std::span<const int64_t> written,
                                  const ObjectiveTokens& tokens);

/// What an encoder-decoder writes for a text.
struct Written {
  GenerateStats stats;
  std::string text;  // as it was written, sentinels included
  /// The prompt with its <extra_id_N> filled in; "" where it has none. Written until the sentinel
  /// behind the prompt's last one comes, or the end of text.
  std::string filled;
};
/// Calls `emit` with pieces of the text as they become certain. Error where the tokenizer and the
/// model say nothing that the text could begin from.
Written generate_text(nn::EncoderDecoder& model, const Tokenizer& tokenizer,
                      const ObjectiveTokens& tokens, const std::string& prompt,
                      const GenerateOptions& options,
                      const std::function<void(std::string_view)>& emit);

/// The same of the ids that are read.
Written generate_text(nn::EncoderDecoder& model, const Tokenizer& tokenizer,
                      const ObjectiveTokens& tokens, std::span<const int64_t> source,
                      const GenerateOptions& options,
                      const std::function<void(std::string_view)>& emit);

/// What an encoder puts in place of each [MASK].
struct Unmasked {
  std::string text;                 // the prompt, filled
  std::vector<std::string> tokens;  // what was put in, in the order of the text
};
/// All masks are guessed at once, each from the same pass, by options.sampling. Error for a prompt
/// without a mask or beyond the context.
Unmasked fill_masks(nn::Encoder& model, const Tokenizer& tokenizer, const ObjectiveTokens& tokens,
                    const std::string& prompt, const GenerateOptions& options);
/// The same of the ids that are read, which may have no mask.
Unmasked fill_masks(nn::Encoder& model, const Tokenizer& tokenizer, const ObjectiveTokens& tokens,
                    std::vector<int64_t> ids, const GenerateOptions& options);

}  // namespace tally
