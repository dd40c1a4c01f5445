#include "models/build.h"

#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "models/config_positions.h"
#include "models/parameters.h"

namespace tally {
namespace {

ops::ActivationKind activation_of(Activation a) {
  switch (a) {
    case Activation::relu:
      return ops::ActivationKind::relu;
    case Activation::squared_relu:
      return ops::ActivationKind::squared_relu;
    case Activation::gelu:
      return ops::ActivationKind::gelu;
    case Activation::gelu_tanh:
      return ops::ActivationKind::gelu_tanh;
    case Activation::silu:
      break;
  }
  return ops::ActivationKind::silu;
}

nn::Block::Options block_options(const ModelConfig& c) {
  nn::Block::Options o;
  o.norm = c.norm == Norm::layer_norm ? nn::NormKind::layer_norm : nn::NormKind::rms_norm;
  o.norm_eps = c.norm_eps;
  o.norm_bias = c.norm_bias;
  o.dropout = c.residual_dropout;
  o.attention = {c.d_model,
                 c.heads,
                 c.kv_heads,
                 c.head_dim,
                 c.qkv_bias,
                 c.attention_output_bias,
                 c.fused_qkv,
                 c.attention_dropout,
                 c.rope_layout == RopeLayout::half ? ops::RotaryPairs::half_split
                                                   : ops::RotaryPairs::interleaved,
                 c.position == Position::alibi ? c.alibi_scale : 0};
  o.mlp = {c.d_model, c.d_ff, activation_of(c.activation), c.gated, c.mlp_bias, c.fused_gate_up};
  return o;
}

// Number i of a normal distribution that is cut at `cutoff`: drawn again, on further streams, until
// it lies inside.
double initial_value(const InitialValues& v, uint64_t seed, uint64_t stream, uint64_t i) {
  if (v.std == 0) return v.mean;
  for (uint64_t attempt = 0;; ++attempt) {
    const double x = v.std * normal_at(seed, stream + (attempt << 32), i);
    if (std::fabs(x) <= v.cutoff) return v.mean + x;
  }
}

template <class T>
void fill(Tensor& t, const InitialValues& v, uint64_t seed, uint64_t stream) {
  std::vector<T> values(static_cast<size_t>(t.numel()));
  parallel_for(t.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double x = initial_value(v, seed, stream, static_cast<uint64_t>(i));
      if constexpr (std::is_same_v<T, bf16>)
        values[static_cast<size_t>(i)] = bf16(static_cast<float>(x));
      else
        values[static_cast<size_t>(i)] = static_cast<T>(x);
    }
  });
  backend(t.device()).copy_from_host(t.data(), values.data(), t.nbytes());
  t.storage().note_write("initialise");
}

}  // namespace

std::unique_ptr<nn::Decoder> build_model(const ModelConfig& c, DType dtype, Device device) {
  nn::Decoder::Options o;
  o.vocab = c.vocab;
  o.context = c.context;
  o.layers = c.layers;
  o.block = block_options(c);
  o.positions = position_options(c);
  o.tied_head = c.tied_head;
  o.head_bias = c.head_bias;
  o.embedding_dropout = c.embedding_dropout;
  o.z_loss = c.z_loss;
  return std::make_unique<nn::Decoder>(o, dtype, device);
}

void initialise(nn::Decoder& model, const ModelConfig& config, uint64_t seed) {
  if (backend(model.device()).is_meta()) return;
  const auto specs = parameter_specs(config);
  auto parameters = model.named_parameters();
  check(specs.size() == parameters.size(), "initialise: the model has ", parameters.size(),
        " parameters, its configuration describes ", specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    auto& [name, t] = parameters[i];
    check(name == specs[i].name && t.shape() == Shape(std::span<const int64_t>(specs[i].shape)),
          "initialise: parameter ", i, " is ", name, " ", t.shape(), " in the model and ",
          specs[i].name, " in its configuration");
    const InitialValues v = initial_values(config, specs[i]);
    if (t.dtype() == DType::f32)
      fill<float>(t, v, seed, i);
    else if (t.dtype() == DType::f64)
      fill<double>(t, v, seed, i);
    else
      fill<bf16>(t, v, seed, i);
  }
}

}  // namespace tally
