#pragma once
#include <memory>

#include "models/config.h"
#include "nn/decoder.h"

namespace tally {

/// The module of a resolved configuration; its parameters are allocated and not set. On the meta
/// device it costs no memory. Error for an architecture that is no decoder: models/architecture.h
/// builds these.
std::unique_ptr<nn::Decoder> build_model(const ModelConfig& config, DType dtype, Device device);

/// Sets every parameter to the initial values that `config.init` names: a pure function of the seed
/// and of the parameter's place in the model. Does nothing on meta.
void initialise(nn::Module& model, const ModelConfig& config, uint64_t seed);

}  // namespace tally
