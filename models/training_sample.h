#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "models/generate.h"
#include "models/trainer.h"

namespace tally {

/// What a model that is being trained writes, in well-formed UTF-8.
struct TrainingSample {
  std::string source;  // what an encoder reads, special tokens shown; "" of a decoder
  std::string text;
};
/// A decoder writes a text from nothing. An encoder fills the masks of the first held-out window (of
/// the training's, where nothing is held out), an encoder-decoder writes what its sentinels stand for,
/// or, with train.pairs, for the first held-out text: the same each time, so that samples show what is
/// learnt.
/// Calls `emit` with pieces of the text.
TrainingSample training_sample(Trainer& trainer, const Tokenizer& tokenizer,
                               const ObjectiveTokens& tokens, const GenerateOptions& options,
                               const std::function<void(std::string_view)>& emit);

}  // namespace tally
