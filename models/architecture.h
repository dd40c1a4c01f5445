#pragma once
#include <functional>
#include <memory>

#include "models/config.h"
#include "models/parameters.h"
#include "models/report.h"
#include "nn/encoder.h"
#include "nn/encoder_decoder.h"

// Models that are not decoders alone: what `architecture` selects.
namespace tally {

struct StepOptions;  // models/training_step.h

/// Throws Error, beginning with `where`, unless the fields fit the architecture: those that it would
/// ignore are a mistake.
void check_architecture(const ModelConfig& config, const std::string& where);

/// More parameters than the fields of this page add, in double: they alone may leave 64 bits.
double encoder_bound(const ModelConfig& config);

/// The modules of a resolved configuration; parameters are allocated and not set. Error for another
/// architecture than theirs.
std::unique_ptr<nn::Encoder> build_encoder(const ModelConfig&, DType, Device);
std::unique_ptr<nn::EncoderDecoder> build_encoder_decoder(const ModelConfig&, DType, Device);

/// A model of any architecture, as build_model (models/build.h) and the above.
std::unique_ptr<nn::LanguageModel> build_language_model(const ModelConfig&, DType, Device);
/// "encoder", as a document says it.
std::string architecture_name(const ModelConfig&);

/// As parameter_specs and parameter_counts (models/parameters.h), for these architectures.
std::vector<ParameterSpec> architecture_specs(const ModelConfig&);
ParameterCount architecture_counts(const ModelConfig&);

/// A model of any architecture with the inputs of one batch. `logits` are those of all tokens, and
/// `loss` takes a generator for dropout, or null.
struct ModelOnBatch {
  std::unique_ptr<nn::Module> module;
  std::function<Tensor()> logits;
  std::function<Tensor(Generator*)> loss;
};
/// Makes integers below a bound, (B, T) of i64, other ones with each call.
using MakeIds = std::function<Tensor(int64_t bound)>;
/// Builds the model and asks for its inputs: ids and targets; of an encoder the types of its
/// segments too; of an encoder-decoder what it reads, made by `source` where that is given. `mask`: 1
/// for a token of what an encoder reads (B, T), or undefined.
ModelOnBatch build_on_batch(const ModelConfig&, DType, Device, const MakeIds& ids,
                            const Tensor& mask = {}, const MakeIds& source = {});

/// The forward pass of make_report.
void architecture_pass(const ModelConfig&, const ReportOptions&);

/// Shape of a training step of any architecture whose data say no more: an encoder-decoder reads
/// `source` tokens (0: as many as it writes), and the mean is over the targets that count, which
/// are all of a decoder's.
StepOptions step_shape(const ModelConfig&, int64_t batch, int64_t seq, int64_t source = 0);
/// Writes `ids` (B,T) into a cache, which an encoder has read before, and gives the call that decodes
/// the token after `next` (B,1). Error for an encoder alone.
std::function<void()> prepare_decoding(nn::LanguageModel& model, const ModelConfig& config,
                                       const Tensor& ids, const Tensor& next);

}  // namespace tally
