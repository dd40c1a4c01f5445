#include "models/config_mixers.h"

#include <algorithm>

#include "core/error.h"
#include "models/suggest.h"

namespace tally {
namespace {

const std::vector<std::string> kMixers = {"attention", "delta", "mamba"};

bool has_mixer(const ModelConfig& c, nn::Mixer mixer) {
  return std::ranges::find(c.mixer_pattern, kMixers[static_cast<size_t>(mixer)]) !=
         c.mixer_pattern.end();
}

/// A field that only one kind of layer reads.
struct OwnField {
  const char* name;
  bool given;
};

void check_unused_sizes(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  const ModelConfig plain;
  const auto needs = [&](bool present, const char* kind, std::initializer_list<OwnField> fields) {
    for (const OwnField& f : fields)
      check(present || !f.given, where, ": ", spelling(f.name), " needs a layer that is ", kind,
            " in mixer_pattern; leave it out, or name one");
  };
  const bool delta = has_mixer(c, nn::Mixer::delta_net), mamba = has_mixer(c, nn::Mixer::mamba);
  needs(delta, "\"delta\"",
        {{"delta_key_heads", c.delta_key_heads != 0},
         {"delta_value_heads", c.delta_value_heads != 0},
         {"delta_key_dim", c.delta_key_dim != 0},
         {"delta_value_dim", c.delta_value_dim != 0}});
  needs(mamba, "\"mamba\"",
        {{"mamba_inner", c.mamba_inner != 0},
         {"mamba_state", c.mamba_state != 0},
         {"mamba_dt_rank", c.mamba_dt_rank != 0},
         {"mamba_norms", c.mamba_norms != plain.mamba_norms},
         {"mamba_conv_bias", c.mamba_conv_bias != plain.mamba_conv_bias}});
  needs(delta || mamba, "\"delta\" or \"mamba\"", {{"conv_width", c.conv_width != 0}});
}

/// Choices that a recurrence would leave out.
void check_beside_recurrence(const ModelConfig& c, const std::string& where) {
  const auto refuse = [&](bool given, const char* field, const char* why, const char* value) {
    check(!given, where, ": ", field, " has no meaning beside a recurrence in mixer_pattern, ", why,
          "; set it to ", value);
  };
  refuse(c.fused_parallel, "fused_parallel", "whose products are its own", "false");
  refuse(c.scalar_biases, "scalar_biases", "whose products have none", "false");
  refuse(c.attention_prefix > 0, "attention_prefix", "which sees only what came before", "0");
}

}  // namespace

std::vector<nn::Mixer> mixers_of(const ModelConfig& c) {
  std::vector<nn::Mixer> mixers;
  for (const std::string& name : c.mixer_pattern)
    mixers.push_back(static_cast<nn::Mixer>(std::ranges::find(kMixers, name) - kMixers.begin()));
  return mixers;
}

nn::Mixer mixer_of(const ModelConfig& c, int64_t layer) {
  if (c.mixer_pattern.empty()) return nn::Mixer::attention;
  const std::string& name = c.mixer_pattern[static_cast<size_t>(layer) % c.mixer_pattern.size()];
  return static_cast<nn::Mixer>(std::ranges::find(kMixers, name) - kMixers.begin());
}

bool names_attention(const ModelConfig& c) {
  return c.mixer_pattern.empty() || has_mixer(c, nn::Mixer::attention);
}

MixerLayers mixer_layers(const ModelConfig& c) {
  MixerLayers n;
  for (int64_t i = 0; i < c.layers; ++i) {
    const nn::Mixer mixer = mixer_of(c, i);
    n.attention += mixer == nn::Mixer::attention;
    n.delta_net += mixer == nn::Mixer::delta_net;
    n.mamba += mixer == nn::Mixer::mamba;
  }
  return n;
}

void resolve_mixers(ModelConfig& c) {
  const auto otherwise = [](int64_t& size, int64_t value) {
    if (size == 0) size = value;
  };
  const bool delta = has_mixer(c, nn::Mixer::delta_net), mamba = has_mixer(c, nn::Mixer::mamba);
  if (delta) {
    otherwise(c.delta_key_heads, c.heads);
    otherwise(c.delta_value_heads, c.delta_key_heads);
    otherwise(c.delta_key_dim, c.head_dim);
    otherwise(c.delta_value_dim, c.delta_key_dim);
  }
  if (mamba) {
    otherwise(c.mamba_inner, 2 * c.d_model);
    otherwise(c.mamba_state, 16);
    otherwise(c.mamba_dt_rank, (c.d_model + 15) / 16);
  }
  if (delta || mamba) otherwise(c.conv_width, 4);
}

void check_mixers(const ModelConfig& c, const std::string& where, const Spelling& spelling) {
  for (const std::string& name : c.mixer_pattern) {
    check(std::ranges::find(kMixers, name) != kMixers.end(), where, ": ", spelling("mixer_pattern"),
          ": \"", name, "\" is not known", did_you_mean(name, kMixers));
  }
  check_unused_sizes(c, where, spelling);
  if (mixer_layers(c).recurrent() == 0) return;
  check_beside_recurrence(c, where);
  check(!has_mixer(c, nn::Mixer::delta_net) || c.delta_value_heads % c.delta_key_heads == 0, where,
        ": ", spelling("delta_value_heads"), " = ", c.delta_value_heads, " must be a multiple of ",
        spelling("delta_key_heads"), " = ", c.delta_key_heads);
}

nn::DeltaNetOptions delta_net_options(const ModelConfig& c) {
  nn::DeltaNetOptions o;
  o.d_model = c.d_model;
  o.key_heads = c.delta_key_heads, o.value_heads = c.delta_value_heads;
  o.key_dim = c.delta_key_dim, o.value_dim = c.delta_value_dim;
  o.conv_width = c.conv_width, o.norm_eps = c.norm_eps;
  return o;
}

nn::MambaOptions mamba_options(const ModelConfig& c) {
  nn::MambaOptions o;
  o.d_model = c.d_model, o.inner = c.mamba_inner, o.state = c.mamba_state;
  o.dt_rank = c.mamba_dt_rank, o.conv_width = c.conv_width;
  o.conv_bias = c.mamba_conv_bias, o.norms = c.mamba_norms, o.norm_eps = c.norm_eps;
  return o;
}

MixerCounts delta_net_counts(const ModelConfig& c) {
  const int64_t d = c.d_model, values = c.delta_value_heads * c.delta_value_dim,
                channels = 2 * c.delta_key_heads * c.delta_key_dim + values;
  MixerCounts n;
  n.matrices = (channels + 2 * values + 2 * c.delta_value_heads) * d;
  n.parameters = n.matrices + channels * c.conv_width + 2 * c.delta_value_heads + c.delta_value_dim;
  n.state = c.delta_key_dim * values;
  n.recent = (c.conv_width - 1) * channels;
  return n;
}

MixerCounts mamba_counts(const ModelConfig& c) {
  const int64_t inner = c.mamba_inner, state = c.mamba_state, rank = c.mamba_dt_rank;
  MixerCounts n;
  n.matrices = 3 * c.d_model * inner + (2 * rank + 2 * state) * inner;
  // Behind the matrices: the convolution, the step's bias, how fast each number fades, the skip.
  n.parameters = n.matrices + inner * (c.conv_width + c.mamba_conv_bias + 1 + state + 1) +
                 (c.mamba_norms ? rank + 2 * state : 0);
  n.state = inner * state;
  n.recent = (c.conv_width - 1) * inner;
  return n;
}

MixerCounts recurrence_counts(const ModelConfig& c) {
  const MixerLayers layers = mixer_layers(c);
  const MixerCounts delta = delta_net_counts(c), mamba = mamba_counts(c);
  const auto all = [&](int64_t MixerCounts::*part) {
    return layers.delta_net * delta.*part + layers.mamba * mamba.*part;
  };
  return {all(&MixerCounts::parameters), all(&MixerCounts::matrices), all(&MixerCounts::state),
          all(&MixerCounts::recent)};
}

double mixer_bound(const ModelConfig& c) {
  const double d = double(c.d_model), width = double(c.conv_width),
               values = double(c.delta_value_heads) * double(c.delta_value_dim),
               keys = double(c.delta_key_heads) * double(c.delta_key_dim),
               inner = double(c.mamba_inner), state = double(c.mamba_state),
               rank = double(c.mamba_dt_rank);
  const double delta = (2 * keys + 3 * values + 2 * double(c.delta_value_heads)) * (d + width),
               mamba = inner * (3 * d + width + 2 * rank + 3 * state + 3);
  return has_mixer(c, nn::Mixer::delta_net) * delta + has_mixer(c, nn::Mixer::mamba) * mamba;
}

}  // namespace tally
