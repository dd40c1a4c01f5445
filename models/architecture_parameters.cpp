// Parameters of the architectures that are no decoder: their names, read from the modules, and their
// number in closed form.
#include "models/architecture.h"

namespace tally {
namespace {

Role role_of(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has(".bias")) return Role::bias;
  if (has("norm.")) return Role::norm;
  if (has("position.")) return Role::position;
  if (has("embedding.") || has("types.")) return Role::embedding;
  if (name == "head.weight") return Role::head;
  return has("out.") || has("down.") ? Role::residual_projection : Role::projection;
}

int64_t layer_of(const std::string& name) {
  const size_t at = name.find("layers.");
  return at == std::string::npos ? 0 : std::stoll(name.substr(at + 7));
}

}  // namespace

std::vector<ParameterSpec> architecture_specs(const ModelConfig& c) {
  std::vector<ParameterSpec> specs;
  const auto list = [&](nn::Module& model) {
    for (const auto& [name, t] : model.named_parameters()) {
      ParameterSpec spec{name, {}, role_of(name), layer_of(name)};
      for (int i = 0; i < t.ndim(); ++i) spec.shape.push_back(t.size(i));
      specs.push_back(std::move(spec));
    }
  };
  if (c.architecture == Architecture::encoder)
    list(*build_encoder(c, DType::f32, kMeta));
  else
    list(*build_encoder_decoder(c, DType::f32, kMeta));
  return specs;
}

ParameterCount architecture_counts(const ModelConfig& c) {
  const bool both = c.architecture == Architecture::encoder_decoder;
  const int64_t d = c.d_model, q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim,
                layers = c.encoder_layers + c.layers, over_memory = both ? c.layers : 0,
                stacks = both ? 2 : 1, branches = c.gated ? 2 : 1;
  const auto mlp = [&](int64_t width) {
    return (branches + 1) * d * width + (c.mlp_bias ? branches * width + d : 0);
  };
  ParameterCount n;
  n.embedding = (c.vocab + c.segment_types) * d;
  if (c.position == Position::learned) n.position = stacks * (c.context + c.position_offset) * d;
  if (c.position == Position::t5_bias) n.position = c.t5_buckets * (c.heads + c.encoder_heads);
  n.attention = (layers + over_memory) * ((2 * q + 2 * kv) * d + (c.qkv_bias ? q + 2 * kv : 0) +
                                          (c.attention_output_bias ? d : 0));
  n.mlp = c.layers * mlp(c.d_ff) + c.encoder_layers * mlp(c.encoder_d_ff);
  const int64_t transform = both ? 0 : 1;  // in front of an encoder's head
  n.norms = norm_width(c) * (2 * layers + over_memory + transform +
                             stacks * (c.embedding_norm + (c.final_norm == FinalNorm::on)));
  n.head = transform * (d * d + d) + (c.tied_head ? 0 : c.vocab * d) + (c.head_bias ? c.vocab : 0);
  return n;
}

}  // namespace tally
