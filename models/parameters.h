#pragma once
#include <string>
#include <vector>

#include "models/config.h"

namespace tally {

/// What a parameter is to the model: decides its initial values and whether it decays.
enum class Role : uint8_t {
  embedding,
  position,
  norm,
  gain,  // of a residual branch
  bias,
  projection,
  residual_projection,
  head,
  // Of recurrences, which begin alike whatever `init` says.
  convolution,
  decay,  // log of how fast a state fades
  step_bias,
  ones,  // the gain of a norm, a skip
  curve  // a number of an activation
};

/// One parameter of the model: name, shape as stored, (out, in) for matrices.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  Role role;
  int64_t layer = 0;  // of the block it belongs to

  int64_t numel() const;
  bool operator==(const ParameterSpec&) const = default;
};

/// Every parameter of the model in the order of the forward pass.
std::vector<ParameterSpec> parameter_specs(const ModelConfig&);

/// What is saved beside them and not trained: biases of routers' choices, layer_scale.
std::vector<ParameterSpec> buffer_specs(const ModelConfig&);

/// Which norms a block has.
struct BlockNorms {
  bool attention, mlp, behind;  // behind: of either branch's output
  int64_t count() const { return attention + mlp + 2 * behind; }
};
BlockNorms norms_of(const ModelConfig&);

/// Whether a layer has experts in place of its feed-forward layer.
bool has_experts(const ModelConfig&, int64_t layer);
/// Width of the layer that every token passes beside the experts; 0: none.
int64_t shared_expert_width(const ModelConfig&);
/// Numbers that a learned activation adds to each layer; 0 for the others.
int64_t learned_activation_parameters(const ModelConfig&);
/// The feed-forward layers of the model, experts included.
struct FeedForwardCounts {
  int64_t parameters = 0;
  int64_t multiplied = 0;  // weights that one token is multiplied with
  int64_t expert_layers = 0;
};
FeedForwardCounts feed_forward_counts(const ModelConfig&);

/// Norms of the model, and parameters of one. Those that part experts from a dense branch are
/// counted by themselves: layers without experts lack them.
int64_t norm_count(const ModelConfig&);
int64_t branch_norm_count(const ModelConfig&);
int64_t norm_width(const ModelConfig&);
/// Those of the norms of queries and keys of all layers, or of latent attention's.
int64_t qk_norm_parameters(const ModelConfig&);

/// Parameters by component, in closed form.
struct ParameterCount {
  int64_t embedding = 0, position = 0, attention = 0, mlp = 0, norms = 0, gains = 0, head = 0;
  int64_t shifts = 0, layer_inputs = 0;
  int64_t recurrence = 0;  // in place of attention, its convolutions and norms included
  int64_t total() const {
    return embedding + position + attention + recurrence + mlp + norms + gains + shifts +
           layer_inputs + head;
  }
};
ParameterCount parameter_counts(const ModelConfig&);
int64_t parameter_count(const ModelConfig&);

/// How a parameter's first values are drawn.
enum class Draw : uint8_t {
  normal,          // mean + std N, drawn again while |std N| is above the cutoff
  log_of_uniform,  // log u, u uniform in (low, high)
  log_of_place,    // log of 1, 2, ... along a row
  step             // s with softplus(s) spread evenly in logarithm over (low, high)
};
/// The values a parameter starts with: `mean`, plus `std` times normal numbers that are drawn again
/// while they are further than `cutoff` from 0 (infinite: never); or what `draw` says.
struct InitialValues {
  double mean = 0, std = 0, cutoff = 0;
  Draw draw = Draw::normal;
  double low = 0, high = 0;
};
/// What `config.init` says about one parameter. Sources stand with each scheme.
InitialValues initial_values(const ModelConfig&, const ParameterSpec&);

}  // namespace tally
