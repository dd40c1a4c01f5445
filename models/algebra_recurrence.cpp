#include "models/algebra_parts.h"

#include <fmt/format.h>

#include <cmath>

#include "models/config_mixers.h"

namespace tally {
namespace {

double d(int64_t v) { return static_cast<double>(v); }

Formula delta_net(const ModelConfig& c, int64_t layers) {
  const int64_t keys = c.delta_key_heads * c.delta_key_dim, heads = c.delta_value_heads,
                values = heads * c.delta_value_dim, w = c.conv_width;
  const int64_t rows = 2 * keys + 3 * values + 2 * heads, channels = 2 * keys + values,
                rest = 2 * heads + c.delta_value_dim;
  return {"delta net",
          "L (D (2 P K + 3 U M + 2 U) + W (2 P K + U M) + 2 U + M)",
          fmt::format("{} x ({} x {} + {} x {} + {})", layers, c.d_model, rows, w, channels, rest),
          d(layers) * (d(c.d_model) * d(rows) + d(w) * d(channels) + d(rest)),
          NAN,
          "parameters"};
}

Formula mamba(const ModelConfig& c, int64_t layers) {
  const int64_t inner = c.mamba_inner, n = c.mamba_state, r = c.mamba_dt_rank;
  const int64_t vectors = c.mamba_conv_bias ? 3 : 2, norms = c.mamba_norms ? r + 2 * n : 0;
  return {
      "mamba",
      fmt::format("L C (3 D + W + 2 R + 3 N + {}){}", vectors, norms ? " + L (R + 2 N)" : ""),
      fmt::format("{} x {} x (3 x {} + {} + 2 x {} + 3 x {} + {}) + {} x {}", layers, inner,
                  c.d_model, c.conv_width, r, n, vectors, layers, norms),
      d(layers) * (d(inner) * d(3 * c.d_model + c.conv_width + 2 * r + 3 * n + vectors) + d(norms)),
      NAN,
      "parameters"};
}

}  // namespace

std::vector<Formula> recurrence_parameters(const Report& r) {
  const MixerLayers layers = mixer_layers(r.config);
  std::vector<Formula> lines;
  if (layers.delta_net > 0) lines.push_back(delta_net(r.config, layers.delta_net));
  if (layers.mamba > 0) lines.push_back(mamba(r.config, layers.mamba));
  // The count is of both kinds together.
  double others = 0;
  for (const Formula& f : lines) others += f.value;
  for (Formula& f : lines) f.counted = d(r.parameters.recurrence) - (others - f.value);
  return lines;
}

std::vector<Formula> recurrence_state(const Report& r) {
  if (mixer_layers(r.config).recurrent() == 0) return {};
  const MixerCounts kept = recurrence_counts(r.config);
  const double state = d(kept.state) * d(size_of(acc_dtype(r.options.dtype))),
               recent = d(kept.recent) * d(size_of(r.options.dtype));
  return {{"state of a sequence",
           "L K U M and L C N numbers in the sums' type, and W - 1 inputs of the convolutions",
           fmt::format("{:.15g} + {:.15g}", state, recent), state + recent, NAN, "bytes"}};
}

}  // namespace tally
