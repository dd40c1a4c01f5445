#pragma once
#include <memory>

#include "models/config.h"
#include "models/parameters.h"
#include "models/report.h"
#include "nn/encoder.h"
#include "nn/encoder_decoder.h"

// Models that are not decoders alone: what `architecture` selects.
namespace tally {

/// Throws Error, beginning with `where`, unless the fields fit the architecture: those that it would
/// ignore are a mistake.
void check_architecture(const ModelConfig& config, const std::string& where);

/// The modules of a resolved configuration; parameters are allocated and not set. Error for another
/// architecture than theirs.
std::unique_ptr<nn::Encoder> build_encoder(const ModelConfig&, DType, Device);
std::unique_ptr<nn::EncoderDecoder> build_encoder_decoder(const ModelConfig&, DType, Device);

/// As parameter_specs and parameter_counts (models/parameters.h), for these architectures.
std::vector<ParameterSpec> architecture_specs(const ModelConfig&);
ParameterCount architecture_counts(const ModelConfig&);

/// Numbers that generation keeps for each token: of an encoder-decoder, for one of the text that is
/// written and one that is read.
double architecture_cache(const ModelConfig&);

/// The pass of make_report: forward, a training step, or one more token, `seq` being read and
/// written before. Fills in what the report says of memory.
void architecture_pass(const ModelConfig&, const ReportOptions&, Report&, Ledger&);

}  // namespace tally
