#pragma once
#include <memory>
#include <span>
#include <string>

#include "data/tokenizer.h"
#include "models/checkpoint.h"
#include "models/target.h"
#include "nn/decoder.h"

namespace tally::cli {

/// A trained model ready to use, from a run directory, a Hugging Face directory or a GGUF file.
struct LoadedModel {
  RunConfig config;
  std::unique_ptr<nn::LanguageModel> model;
  std::string folder;
};
/// Its model, where that is a decoder. Error, beginning with `verb`, for another architecture.
nn::Decoder& decoder_of(const LoadedModel& loaded, const char* verb);
/// `overrides` change fields of its configuration, as --set does.
/// Error for a run of f64 in another type: its weights would lose digits.
LoadedModel load_model(const std::string& name, DType dtype, Device device,
                       std::span<const std::string> overrides = {});
/// Fills the parameters of a module of any architecture.
void read_weights(nn::Module& model, const Checkpoint& checkpoint);
/// The tokenizer that lies in the model's folder, or in its GGUF file. Error when there is none.
Tokenizer load_model_tokenizer(const LoadedModel& loaded);
/// Brings the tokenizer of a model, where it has one, into folder `to`: the files of a folder, or
/// what its GGUF file holds.
void copy_tokenizer(const std::string& from, const std::string& to);

}  // namespace tally::cli
