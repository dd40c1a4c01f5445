#include "models/training_sample.h"

#include "data/utf8.h"
#include "models/infill.h"

namespace tally {
namespace {

TrainingSample from_nothing(nn::Decoder& model, const Tokenizer& tokenizer,
                            const GenerateOptions& options,
                            const std::function<void(std::string_view)>& emit) {
  TrainingSample sample;
  // A tokenizer without an end of text has no token that a text begins with.
  generate_text(model, tokenizer, tokenizer.eot() ? "" : "\n", options,
                [&](std::string_view piece) {
                  sample.text += piece;
                  emit(piece);
                });
  return sample;
}

std::string text_for(nn::LanguageModel& model, const Tokenizer& tokenizer,
                     const ObjectiveTokens& tokens, const std::vector<int64_t>& source,
                     const GenerateOptions& options) {
  if (auto* encoder = dynamic_cast<nn::Encoder*>(&model))
    return fill_masks(*encoder, tokenizer, tokens, source, options).text;
  auto& writer = dynamic_cast<nn::EncoderDecoder&>(model);
  return generate_text(writer, tokenizer, tokens, source, options, [](std::string_view) {}).text;
}

}  // namespace

TrainingSample training_sample(Trainer& trainer, const Tokenizer& tokenizer,
                               const ObjectiveTokens& tokens, const GenerateOptions& options,
                               const std::function<void(std::string_view)>& emit) {
  if (trainer.config().model.architecture == Architecture::decoder)
    return from_nothing(trainer.decoder(), tokenizer, options, emit);
  const std::vector<int64_t> source = trainer.first_source();
  TrainingSample sample{
      replace_ill_formed(tokenizer.decode(source)),
      replace_ill_formed(text_for(trainer.model(), tokenizer, tokens, source, options))};
  emit(sample.source + "\n       -> " + sample.text);
  return sample;
}

}  // namespace tally
