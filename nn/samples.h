#pragma once
#include "autograd/proof/sample.h"

namespace tally::nn {

/// Samples of every layer of nn, for the proofs: explicit forward and backward, and the composition
/// of plain ops on the tape that the layer must equal.
std::vector<Sample> layer_samples();

// Those of one layer, each in a file of its own.
void add_cross_attention(std::vector<Sample>& all);
void add_feed_forward(std::vector<Sample>& all);
void add_layer_grid(std::vector<Sample>& all);     // every option of a layer with every other
void add_modules(std::vector<Sample>& all);        // norms, mixtures, latent attention, blocks
void add_stack_modules(std::vector<Sample>& all);  // encoders, decoders, both
void add_recurrent_modules(std::vector<Sample>& all);
void add_shared_modules(std::vector<Sample>& all);  // attention that shares keys, layers' inputs

}  // namespace tally::nn
