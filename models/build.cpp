#include "models/build.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "models/config_attention.h"
#include "models/config_blocks.h"
#include "models/config_mixers.h"
#include "models/config_positions.h"
#include "models/mup.h"
#include "models/parameters.h"

namespace tally {
namespace {

// Number i of a row-major parameter with rows of `columns`.
double drawn_value(const InitialValues& v, uint64_t seed, uint64_t stream, uint64_t i,
                   uint64_t columns) {
  if (v.draw == Draw::log_of_place) return std::log(static_cast<double>(1 + i % columns));
  const double u = uniform_at(seed, stream, i);
  if (v.draw == Draw::log_of_uniform)
    return std::log(std::max(v.low + u * (v.high - v.low), 1e-4 * v.high));
  const double step = v.low * std::pow(v.high / v.low, u);
  return step + std::log(-std::expm1(-step));  // softplus of this is the step
}

// Number i of a normal distribution that is cut at `cutoff`: drawn again, on further streams, until
// it lies inside.
double initial_value(const InitialValues& v, uint64_t seed, uint64_t stream, uint64_t i,
                     uint64_t columns) {
  if (v.draw != Draw::normal) return drawn_value(v, seed, stream, i, columns);
  if (v.std == 0) return v.mean;
  for (uint64_t attempt = 0;; ++attempt) {
    const double x = v.std * normal_at(seed, stream + (attempt << 32), i);
    if (std::fabs(x) <= v.cutoff) return v.mean + x;
  }
}

template <class T>
void fill(Tensor& t, const InitialValues& v, uint64_t seed, uint64_t stream) {
  std::vector<T> values(static_cast<size_t>(t.numel()));
  const auto columns = static_cast<uint64_t>(t.ndim() > 0 ? t.size(-1) : 1);
  parallel_for(t.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double x = initial_value(v, seed, stream, static_cast<uint64_t>(i), columns);
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
  check(c.architecture == Architecture::decoder, "model: ", c.name,
        " has architecture = ", enum_names(c.architecture)[static_cast<size_t>(c.architecture)],
        "; this is for decoders. `account` counts the others, and build_encoder and "
        "build_encoder_decoder (models/architecture.h) build them");
  nn::Decoder::Options o;
  o.vocab = c.vocab;
  o.context = c.context;
  o.embedding_dim = c.embedding_dim;
  o.layers = c.layers;
  o.block = block_options(c);
  o.positions = position_options(c);
  o.attention = attention_options(c);
  o.global_head_dim = c.global_head_dim, o.global_kv_heads = c.global_kv_heads;
  o.taking = c.shared_kv_layers, o.taking_d_ff = c.shared_kv_d_ff;
  o.mixers = mixers_of(c);
  o.residual_scales = c.residual_scales;
  o.final_norm = c.final_norm == FinalNorm::on;
  o.embedding_norm = c.embedding_norm;
  o.fix_norm = static_cast<nn::FixNorm>(c.fix_norm);
  o.embedding_scale = c.embedding_scale, o.logit_scale = c.logit_scale / mup_width(c);
  o.final_soft_cap = c.final_soft_cap;
  o.first_experts = c.first_expert_layer, o.experts_every = c.expert_layer_every;
  o.load_balance_loss = c.load_balance_loss;
  o.prefix = c.attention_prefix, o.document_end = c.document_end;
  o.tied_head = c.tied_head;
  o.head_bias = c.head_bias;
  o.embedding_dropout = c.embedding_dropout;
  o.label_smoothing = c.label_smoothing, o.z_loss = c.z_loss;
  o.max_z_loss = c.max_z_loss;
  return std::make_unique<nn::Decoder>(o, dtype, device);
}

void initialise(nn::Module& model, const ModelConfig& config, uint64_t seed) {
  auto parameters = model.named_parameters();
  if (parameters.empty() || backend(parameters[0].second.device()).is_meta()) return;
  const auto specs = parameter_specs(config);
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
