#include "models/architecture.h"

#include "models/config_blocks.h"
#include "models/config_positions.h"

namespace tally {
namespace {

bool reads(const ModelConfig& c) { return c.architecture == Architecture::encoder_decoder; }

nn::StackOptions stack_options(const ModelConfig& c, bool decoder) {
  const nn::Block::Options block = block_options(c);
  nn::StackOptions o;
  o.layers = reads(c) && !decoder ? c.encoder_layers : c.layers;
  o.context = c.context;
  o.norm = block.norm;
  o.post_norm = c.placement == Placement::post;
  o.embedding_norm = c.embedding_norm;
  o.final_norm = c.final_norm == FinalNorm::on;
  auto& a = o.attention;
  a.d_model = c.d_model, a.heads = c.heads, a.kv_heads = c.kv_heads, a.head_dim = c.head_dim;
  a.qkv_bias = c.qkv_bias, a.out_bias = c.attention_output_bias, a.fused = c.fused_qkv;
  a.causal = decoder, a.dropout = c.attention_dropout;
  if (c.attention_scale > 0) a.scale = c.attention_scale;
  o.d_memory = decoder ? c.d_model : 0;
  o.mlp = block.mlp;
  o.positions = position_options(c);
  o.positions.two_sided = !decoder;
  o.dropout = c.residual_dropout, o.embedding_dropout = c.embedding_dropout;
  return o;
}

}  // namespace

void check_architecture(const ModelConfig& c, const std::string& where) {
  const ModelConfig plain;
  const bool decoder = c.architecture == Architecture::decoder,
             encoder = c.architecture == Architecture::encoder;
  const auto needs = [&](bool fits, const char* field, const char* what) {
    check(fits, where, ": ", field, " needs architecture = ", what,
          "; leave it out, or choose that");
  };
  needs(encoder || c.segment_types == 0, "segment_types", "encoder");
  needs(reads(c) || c.encoder_layers == 0, "encoder_layers", "encoder_decoder");
  needs(!decoder || c.padding_id < 0, "padding_id", "encoder or encoder_decoder");
  needs(!decoder || c.attention_scale == 0, "attention_scale", "encoder or encoder_decoder");
  check(c.padding_id < c.vocab, where, ": padding_id must be below vocab = ", c.vocab, "; got ",
        c.padding_id);
  if (decoder) return;
  const bool placed = c.position == Position::none || c.position == Position::learned ||
                      c.position == Position::sinusoidal || c.position == Position::t5_bias;
  check(placed && c.position_pattern.empty(), where,
        ": encoders have position = none, learned, sinusoidal or t5_bias, in every layer");
  check(c.placement == Placement::pre || c.placement == Placement::post, where,
        ": encoders have placement = pre or post");
  check(c.parallel == Parallel::none && c.residual_scale == 1 && c.residual_scales.empty() &&
            c.residual_gain == ResidualGain::none && c.stochastic_depth == 0 &&
            c.fix_norm == FixNorm::none && c.final_soft_cap == 0 && c.label_smoothing == 0 &&
            c.z_loss == 0,
        where,
        ": parallel branches, residual scales and gains, stochastic_depth, fix_norm, "
        "final_soft_cap, label_smoothing and z_loss are for architecture = decoder");
  check(!encoder || (c.tied_head && c.head_bias && c.embedding_scale == 1 && c.logit_scale == 1),
        where,
        ": the head of an encoder is its table with a bias: tied_head and head_bias are true, "
        "embedding_scale and logit_scale 1");
}

std::unique_ptr<nn::Encoder> build_encoder(const ModelConfig& c, DType dtype, Device device) {
  check(c.architecture == Architecture::encoder, "build_encoder: ", c.name, " is no encoder");
  nn::Encoder::Options o;
  o.vocab = c.vocab, o.types = c.segment_types, o.padding_id = c.padding_id;
  o.stack = stack_options(c, false);
  o.head_activation = o.stack.mlp.activation;
  return std::make_unique<nn::Encoder>(o, dtype, device);
}

std::unique_ptr<nn::EncoderDecoder> build_encoder_decoder(const ModelConfig& c, DType dtype,
                                                          Device device) {
  check(reads(c), "build_encoder_decoder: ", c.name, " is no encoder-decoder");
  nn::EncoderDecoder::Options o;
  o.vocab = c.vocab, o.padding_id = c.padding_id;
  o.encoder = stack_options(c, false), o.decoder = stack_options(c, true);
  o.embedding_scale = c.embedding_scale, o.output_scale = c.logit_scale;
  o.tied_head = c.tied_head, o.head_bias = c.head_bias;
  return std::make_unique<nn::EncoderDecoder>(o, dtype, device);
}

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
  if (reads(c))
    list(*build_encoder_decoder(c, DType::f32, kMeta));
  else
    list(*build_encoder(c, DType::f32, kMeta));
  return specs;
}

ParameterCount architecture_counts(const ModelConfig& c) {
  const int64_t d = c.d_model, q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim,
                branches = c.gated ? 2 : 1, read = c.encoder_layers, layers = read + c.layers,
                stacks = reads(c) ? 2 : 1, over_memory = reads(c) ? c.layers : 0;
  ParameterCount n;
  n.embedding = (c.vocab + c.segment_types) * d;
  n.position = stacks * (c.position == Position::learned   ? (c.context + c.position_offset) * d
                         : c.position == Position::t5_bias ? c.t5_buckets * c.heads
                                                           : 0);
  n.attention = (layers + over_memory) * ((2 * q + 2 * kv) * d + (c.qkv_bias ? q + 2 * kv : 0) +
                                          (c.attention_output_bias ? d : 0));
  n.mlp = layers * ((branches + 1) * d * c.d_ff + (c.mlp_bias ? branches * c.d_ff + d : 0));
  const int64_t transform = reads(c) ? 0 : 1;  // in front of an encoder's head
  n.norms = norm_width(c) * (2 * layers + over_memory + transform +
                             stacks * (c.embedding_norm + (c.final_norm == FinalNorm::on)));
  n.head = transform * (d * d + d) + (c.tied_head ? 0 : c.vocab * d) + (c.head_bias ? c.vocab : 0);
  return n;
}

double architecture_cache(const ModelConfig& c) {
  return reads(c) ? 4.0 * static_cast<double>(c.layers * c.kv_heads * c.head_dim) : 0;
}

}  // namespace tally
