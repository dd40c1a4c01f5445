#pragma once
#include "models/config.h"
#include "nn/block.h"

namespace tally {

/// What mixes the tokens of a layer, as mixer_pattern says it.
nn::Mixer mixer_of(const ModelConfig& config, int64_t layer);
/// Those of the layers in turn; empty: attention in all.
std::vector<nn::Mixer> mixers_of(const ModelConfig& config);

/// Whether mixer_pattern names attention, or nothing, which is attention in all layers.
bool names_attention(const ModelConfig& config);

/// Layers of each kind.
struct MixerLayers {
  int64_t attention = 0, delta_net = 0, mamba = 0;
  int64_t recurrent() const { return delta_net + mamba; }
};
MixerLayers mixer_layers(const ModelConfig& config);

/// Fills in the sizes of recurrences that are 0, where a layer has one.
void resolve_mixers(ModelConfig& config);

/// Throws Error, beginning with `where`, unless the fields about recurrences are there where
/// mixer_pattern asks for them, and fit the other fields.
void check_mixers(const ModelConfig& config, const std::string& where,
                  const Spelling& spelling = own_spelling);

/// What these fields say, for the modules. `config` is resolved and checked.
nn::DeltaNetOptions delta_net_options(const ModelConfig& config);
nn::MambaOptions mamba_options(const ModelConfig& config);

/// Of one layer: parameters in all, those of matrices that multiply each token once, and numbers
/// that generation keeps for a sequence: of the state, in the accumulator's type, and of recent
/// inputs of the convolution.
struct MixerCounts {
  int64_t parameters = 0, matrices = 0, state = 0, recent = 0;
};
MixerCounts delta_net_counts(const ModelConfig& config);
MixerCounts mamba_counts(const ModelConfig& config);
/// Of all layers together.
MixerCounts recurrence_counts(const ModelConfig& config);

/// The parameters in double: sizes that are not checked may leave 64 bits.
double mixer_bound(const ModelConfig& config);

}  // namespace tally
