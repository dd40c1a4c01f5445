#include "models/architecture.h"

#include <algorithm>
#include <set>

#include "models/build.h"
#include "models/config_attention.h"
#include "models/config_blocks.h"
#include "models/config_positions.h"

namespace tally {
namespace {

bool reads(const ModelConfig& c) { return c.architecture == Architecture::encoder_decoder; }
std::string_view name_of(const ModelConfig& c) {
  return enum_names(c.architecture)[static_cast<size_t>(c.architecture)];
}

/// What a layer of an encoder is made of; every other field would be ignored.
const std::set<std::string_view>& fields_of_encoders() {
  static const std::set<std::string_view> fields = {"name",
                                                    "layers",
                                                    "d_model",
                                                    "heads",
                                                    "kv_heads",
                                                    "head_dim",
                                                    "d_ff",
                                                    "vocab",
                                                    "context",
                                                    "architecture",
                                                    "padding_id",
                                                    "norm",
                                                    "norm_eps",
                                                    "norm_bias",
                                                    "norm_gain",
                                                    "norm_round_before_gain",
                                                    "placement",
                                                    "final_norm",
                                                    "embedding_norm",
                                                    "activation",
                                                    "activation_parameter",
                                                    "gated",
                                                    "gate_limit",
                                                    "gate_offset",
                                                    "position",
                                                    "position_offset",
                                                    "sinusoid_layout",
                                                    "t5_buckets",
                                                    "t5_max_distance",
                                                    "attention_scale",
                                                    "qkv_bias",
                                                    "attention_output_bias",
                                                    "mlp_bias",
                                                    "head_bias",
                                                    "tied_head",
                                                    "fused_qkv",
                                                    "fused_gate_up",
                                                    "embedding_dropout",
                                                    "attention_dropout",
                                                    "residual_dropout",
                                                    "label_smoothing",
                                                    "z_loss",
                                                    "max_z_loss",
                                                    "init",
                                                    "init_std"};
  return fields;
}
/// And those that one architecture alone has.
bool of_one_architecture(std::string_view field, Architecture a) {
  static const std::set<std::string_view> both = {"encoder_layers", "encoder_heads", "encoder_d_ff",
                                                  "embedding_scale", "logit_scale"};
  static const std::set<std::string_view> seen = {"segment_types",     "window",
                                                  "attention_pattern", "attention_global",
                                                  "document_end",      "attention_soft_cap"};
  if (a == Architecture::encoder) return seen.contains(field);
  return a == Architecture::encoder_decoder && both.contains(field);
}

void check_unused_fields(const ModelConfig& c, const std::string& where) {
  const ModelConfig plain;
  for (const Field<ModelConfig>& field : model_fields()) {
    if (fields_of_encoders().contains(field.name) ||
        of_one_architecture(field.name, c.architecture))
      continue;
    check(same_value(field, c, plain), where, ": ", field.name,
          " has no meaning for architecture = ", name_of(c), "; leave it out");
  }
}

void check_decoder(const ModelConfig& c, const std::string& where) {
  const auto needs = [&](bool fits, const char* field, const char* what) {
    check(fits, where, ": ", field, " needs architecture = ", what,
          "; leave it out, or choose that");
  };
  needs(c.segment_types == 0, "segment_types", "encoder");
  needs(c.encoder_layers == 0, "encoder_layers", "encoder_decoder");
  needs(c.encoder_heads == 0, "encoder_heads", "encoder_decoder");
  needs(c.encoder_d_ff == 0, "encoder_d_ff", "encoder_decoder");
  needs(c.padding_id < 0, "padding_id", "encoder or encoder_decoder");
}

void check_encoder_heads(const ModelConfig& c, const std::string& where) {
  const int64_t width = c.heads * c.head_dim;
  check(c.encoder_heads == c.heads || (c.kv_heads == c.heads && width % c.encoder_heads == 0),
        where, ": encoder_heads = ", c.encoder_heads, " must divide heads x head_dim = ", width,
        ", and kv_heads must equal heads, when it is not heads = ", c.heads);
}

nn::StackOptions stack_options(const ModelConfig& c, bool decoder) {
  const nn::Block::Options block = block_options(c);
  const bool apart = reads(c) && !decoder;  // an encoder with sizes of its own
  nn::StackOptions o;
  o.layers = apart ? c.encoder_layers : c.layers;
  o.context = c.context;
  o.norm = block.norm;
  o.post_norm = c.placement == Placement::post;
  o.embedding_norm = c.embedding_norm;
  o.final_norm = c.final_norm == FinalNorm::on;
  auto& a = o.attention;
  a.d_model = c.d_model, a.heads = c.heads, a.kv_heads = c.kv_heads, a.head_dim = c.head_dim;
  if (apart && c.encoder_heads != c.heads) {
    a.heads = a.kv_heads = c.encoder_heads;
    a.head_dim = c.heads * c.head_dim / c.encoder_heads;
  }
  a.qkv_bias = c.qkv_bias, a.out_bias = c.attention_output_bias, a.fused = c.fused_qkv;
  a.causal = decoder, a.dropout = c.attention_dropout;
  if (c.attention_scale > 0) a.scale = c.attention_scale;
  o.d_memory = decoder ? c.d_model : 0;
  o.mlp = block.mlp;
  if (apart) o.mlp.d_ff = c.encoder_d_ff;
  o.positions = position_options(c);
  o.positions.two_sided = !decoder;
  o.dropout = c.residual_dropout, o.embedding_dropout = c.embedding_dropout;
  return o;
}

ops::LossOptions loss_options(const ModelConfig& c) {
  ops::LossOptions o;
  o.label_smoothing = c.label_smoothing, o.z_loss = c.z_loss;
  o.max_z_loss = c.max_z_loss;
  return o;
}

}  // namespace

void check_architecture(const ModelConfig& c, const std::string& where) {
  const bool encoder = c.architecture == Architecture::encoder;
  check(c.padding_id < c.vocab, where, ": padding_id must be below vocab = ", c.vocab, "; got ",
        c.padding_id);
  if (c.architecture == Architecture::decoder) {
    check_decoder(c, where);
    return;
  }
  const bool placed = c.position == Position::none || c.position == Position::learned ||
                      c.position == Position::sinusoidal || c.position == Position::t5_bias;
  check(placed, where, ": architecture = ", name_of(c),
        " has position = none, learned, sinusoidal or t5_bias; got ",
        enum_names(c.position)[static_cast<size_t>(c.position)]);
  check(c.placement == Placement::pre || c.placement == Placement::post, where,
        ": architecture = ", name_of(c), " has placement = pre or post; got ",
        enum_names(c.placement)[static_cast<size_t>(c.placement)]);
  check(!encoder || (c.tied_head && c.head_bias), where,
        ": the head of an encoder is its table with a bias; set tied_head and head_bias to true");
  check(!encoder || c.attention_stride == 0, where,
        ": strided and fixed layers look back alone, and an encoder sees both ways; choose full or "
        "window in attention_pattern");
  check_unused_fields(c, where);
  if (!encoder) check_encoder_heads(c, where);
}

double encoder_bound(const ModelConfig& c) {
  const double d = double(c.d_model), width = double(c.head_dim) * double(c.heads + c.kv_heads) * 2;
  const double over_memory = reads(c) ? double(c.layers) * width * d : 0;
  return double(c.encoder_layers) * (width * d + 3 * d * double(c.encoder_d_ff)) + over_memory +
         double(c.segment_types) * d;
}

std::unique_ptr<nn::Encoder> build_encoder(const ModelConfig& c, DType dtype, Device device) {
  check(c.architecture == Architecture::encoder, "build_encoder: ", c.name,
        " has architecture = ", name_of(c));
  nn::Encoder::Options o;
  o.vocab = c.vocab, o.types = c.segment_types, o.padding_id = c.padding_id;
  o.stack = stack_options(c, false), o.stack.scores = attention_options(c);
  o.document_end = c.document_end;
  o.head_activation = o.stack.mlp.activation;
  o.loss = loss_options(c);
  return std::make_unique<nn::Encoder>(o, dtype, device);
}

std::unique_ptr<nn::EncoderDecoder> build_encoder_decoder(const ModelConfig& c, DType dtype,
                                                          Device device) {
  check(reads(c), "build_encoder_decoder: ", c.name, " has architecture = ", name_of(c));
  nn::EncoderDecoder::Options o;
  o.vocab = c.vocab, o.padding_id = c.padding_id;
  o.encoder = stack_options(c, false), o.decoder = stack_options(c, true);
  o.embedding_scale = c.embedding_scale, o.output_scale = c.logit_scale;
  o.tied_head = c.tied_head, o.head_bias = c.head_bias;
  o.loss = loss_options(c);
  return std::make_unique<nn::EncoderDecoder>(o, dtype, device);
}

std::unique_ptr<nn::LanguageModel> build_language_model(const ModelConfig& c, DType dtype,
                                                        Device device) {
  switch (c.architecture) {
    case Architecture::encoder:
      return build_encoder(c, dtype, device);
    case Architecture::encoder_decoder:
      return build_encoder_decoder(c, dtype, device);
    case Architecture::decoder:
      break;
  }
  return build_model(c, dtype, device);
}

std::string architecture_name(const ModelConfig& c) { return std::string(name_of(c)); }

namespace {

template <class Model, class Logits, class Loss>
ModelOnBatch on_batch(std::unique_ptr<Model> model, Logits logits, Loss loss) {
  Model& m = *model;
  return {std::move(model), [&m, logits] { return logits(m); },
          [&m, loss](Generator* dropout) { return loss(m, dropout); }};
}

}  // namespace

ModelOnBatch build_on_batch(const ModelConfig& c, DType dtype, Device device, const MakeIds& make,
                            const Tensor& mask, const MakeIds& make_source) {
  const Tensor ids = make(c.vocab), targets = make(c.vocab);
  if (c.architecture == Architecture::decoder)
    return on_batch(
        build_model(c, dtype, device), [=](nn::Decoder& m) { return m.logits(ids); },
        [=](nn::Decoder& m, Generator* dropout) { return m.loss(ids, targets, 0, dropout); });
  if (c.architecture == Architecture::encoder) {
    const Tensor types = c.segment_types > 0 ? make(c.segment_types) : Tensor();
    return on_batch(
        build_encoder(c, dtype, device), [=](nn::Encoder& m) { return m.logits(ids, types, mask); },
        [=](nn::Encoder& m, Generator* dropout) {
          return m.loss(ids, targets, types, mask, dropout);
        });
  }
  const Tensor source = (make_source ? make_source : make)(c.vocab);
  return on_batch(
      build_encoder_decoder(c, dtype, device),
      [=](nn::EncoderDecoder& m) { return m.logits(m.encode(source, mask), ids); },
      [=](nn::EncoderDecoder& m, Generator* dropout) {
        return m.loss(m.encode(source, mask, dropout), ids, targets, dropout);
      });
}

}  // namespace tally
