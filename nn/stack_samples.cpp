// Whole stacks as rows of the table of samples: encoders, decoders, and both together.
#include "nn/decoder.h"
#include "nn/encoder.h"
#include "nn/encoder_decoder.h"
#include "nn/module_sample.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

using Tensors = std::vector<Tensor>;

constexpr int64_t kWidth = 4, kVocab = 5;

StackOptions small_stack(bool causal) {
  StackOptions o;
  o.layers = 1, o.context = 4;
  o.norm = {NormKind::layer_norm, 0.1, true};
  o.attention.d_model = o.mlp.d_model = kWidth;
  o.attention.heads = 2, o.attention.kv_heads = 1, o.attention.head_dim = 2;
  o.attention.causal = causal;
  o.mlp.d_ff = 3, o.mlp.gated = false, o.mlp.activation = ops::ActivationKind::gelu;
  o.positions.kind = PositionKind::learned;
  return o;
}
StackOptions with_bias_of_t5(StackOptions o) {
  o.positions.kind = PositionKind::t5_bias;
  o.positions.buckets = 4, o.positions.max_distance = 4;
  o.positions.two_sided = !o.attention.causal;
  return o;
}

// x, its mask, the memory and its mask.
Sample stack(const std::string& name, const StackOptions& o, std::vector<SampleInput> in) {
  const ModuleUse<Stack> use{[o](DType t, Device d) { return std::make_unique<Stack>(o, t, d); },
                             [](Stack& m, const Tensors& t) -> Tensors {
                               Generator dropout(7);
                               return {m.forward(t[0], t[1], {t[2], t[3]}, &dropout)};
                             }};
  Sample s = module_sample("stack", name, use, std::move(in));
  s.bounded_cost = s.inputs[1].present || s.inputs[3].present;
  return s;
}

void add_stacks(std::vector<Sample>& all) {
  const SampleInput none = absent();
  uint64_t seed = 200;
  const auto x = [&](const Shape& s) { return normal(s, ++seed); };
  for (const bool causal : {false, true}) {
    for (const bool post : {false, true}) {
      for (const bool memory : {false, true}) {
        StackOptions o = small_stack(causal);
        o.post_norm = post, o.final_norm = !post, o.embedding_norm = post;
        if (memory) o.d_memory = 3;
        const std::string name = std::string(causal ? "causal" : "all see all") +
                                 (post ? ", post-norm" : ", pre-norm") +
                                 (memory ? ", over a memory" : "");
        all.push_back(
            stack(name, o, {x({2, 3, kWidth}), none, memory ? x({2, 2, 3}) : none, none}));
        all.push_back(
            stack(name + ", T5's bias, masks", with_bias_of_t5(o),
                  {x({2, 3, kWidth}), flags({2, 3}, {1, 1, 1, 1, 1, 0}),
                   memory ? x({2, 2, 3}) : none, memory ? flags({2, 2}, {1, 1, 1, 0}) : none}));
      }
    }
  }
  StackOptions dropped = small_stack(true);
  dropped.dropout = 0.2, dropped.embedding_dropout = 0.3, dropped.attention.dropout = 0.4;
  StackOptions gated = small_stack(false);
  gated.mlp.gated = gated.attention.fused = gated.attention.qkv_bias = true;
  gated.attention.scale = 1;
  gated.norm = {NormKind::rms_norm, 0.1};
  gated.positions.kind = PositionKind::none;
  all.push_back(stack("dropout everywhere", dropped, {x({2, 3, kWidth}), none, none, none}));
  all.push_back(stack("RMSNorm, gated, no scale", gated, {x({1, 3, kWidth}), none, none, none}));
  all.push_back(stack("one token", small_stack(true), {x({1, 1, kWidth}), none, none, none}));
  all.push_back(stack("no tokens", small_stack(true), {x({2, 0, kWidth}), none, none, none}));
}

Sample encoder(const std::string& name, Encoder::Options o, std::vector<SampleInput> in) {
  o.vocab = kVocab;
  const ModuleUse<Encoder> use{
      [o](DType t, Device d) { return std::make_unique<Encoder>(o, t, d); },
      [](Encoder& m, const Tensors& t) -> Tensors {
        return {m.logits(t[0], t[2], t[3]), m.loss(t[0], t[1], t[2], t[3])};
      }};
  return module_sample("encoder", name, use, std::move(in)).bounded();
}

void add_encoders(std::vector<Sample>& all) {
  const SampleInput ids = indices({2, 3}, {0, 4, 2, 2, 1, 3});
  const SampleInput guess = indices({2, 3}, {-100, 4, -100, 0, -100, 2});
  for (int options = 0; options < 8; ++options) {
    Encoder::Options o;
    o.stack = options & 1 ? with_bias_of_t5(small_stack(false)) : small_stack(false);
    o.types = options & 2 ? 2 : 0;
    o.head_transform = (options & 4) != 0;
    all.push_back(encoder("options " + to_text(options), o,
                          {ids, guess, options & 2 ? indices({2, 3}, {0, 0, 1, 1, 1, 0}) : absent(),
                           options & 4 ? flags({2, 3}, {1, 1, 1, 1, 1, 0}) : absent()}));
  }
  Encoder::Options plain;
  plain.stack = small_stack(false);
  Encoder::Options packed = plain;
  packed.document_end = 4, packed.stack.scores.resize(1);
  packed.stack.scores[0].window = 2, packed.stack.scores[0].global = 1;
  all.push_back(encoder("a window, a global token, documents", packed,
                        {indices({2, 4}, {0, 4, 2, 1, 2, 1, 3, 0}),
                         indices({2, 4}, {1, -100, 4, -100, 0, -100, 2, 1}), absent(), absent()}));
  all.push_back(encoder("one token", plain,
                        {indices({1, 1}, {3}), indices({1, 1}, {2}), absent(), absent()}));
  all.push_back(encoder("no sequences", plain,
                        {indices({0, 3}, {}), indices({0, 3}, {}), absent(), absent()}));
}

Sample encoder_decoder(const std::string& name, EncoderDecoder::Options o,
                       std::vector<SampleInput> in) {
  o.vocab = kVocab;
  o.encoder = small_stack(false), o.decoder = small_stack(true);
  o.decoder.d_memory = kWidth;
  if (!o.tied_head) o.encoder = with_bias_of_t5(o.encoder), o.decoder = with_bias_of_t5(o.decoder);
  const ModuleUse<EncoderDecoder> use{
      [o](DType t, Device d) { return std::make_unique<EncoderDecoder>(o, t, d); },
      [](EncoderDecoder& m, const Tensors& t) -> Tensors {
        const auto memory = m.encode(t[0], t[3]);
        return {m.logits(memory, t[1]), m.loss(memory, t[1], t[2])};
      }};
  return module_sample("encoder_decoder", name, use, std::move(in)).bounded();
}

void add_encoder_decoders(std::vector<Sample>& all) {
  const SampleInput source = indices({2, 2}, {0, 4, 2, 3}),
                    ids = indices({2, 3}, {1, 4, 2, 0, 1, 3});
  const SampleInput targets = indices({2, 3}, {4, 2, -100, 1, 3, 0});
  for (int options = 0; options < 8; ++options) {
    EncoderDecoder::Options o;
    o.tied_head = (options & 1) != 0, o.head_bias = (options & 2) != 0;
    if (options & 4) o.embedding_scale = 2, o.output_scale = 0.5;
    all.push_back(encoder_decoder(
        "options " + to_text(options), o,
        {source, ids, targets, options & 4 ? flags({2, 2}, {1, 1, 1, 0}) : absent()}));
  }
  all.push_back(encoder_decoder(
      "one token of each side", {},
      {indices({1, 1}, {3}), indices({1, 1}, {2}), indices({1, 1}, {0}), absent()}));
  all.push_back(
      encoder_decoder("no sequences", {},
                      {indices({0, 2}, {}), indices({0, 3}, {}), indices({0, 3}, {}), absent()}));
}

Sample decoder(const std::string& name, Decoder::Options o, const Shape& shape, uint64_t seed) {
  o.vocab = kVocab, o.context = 4, o.layers = 1;
  o.block.norm.eps = 0.1;
  o.block.attention.d_model = o.block.mlp.d_model = kWidth;
  o.block.attention.heads = 2, o.block.attention.kv_heads = 1, o.block.attention.head_dim = 2;
  o.block.mlp.d_ff = 3;
  if (o.block.experts) o.block.experts->d_model = kWidth;
  const ModuleUse<Decoder> use{
      [o](DType t, Device d) { return std::make_unique<Decoder>(o, t, d); },
      [](Decoder& m, const Tensors& t) -> Tensors {
        Generator dropout(8);
        return {m.logits(t[0]), m.loss(t[0], t[1], 0, &dropout)};
      }};
  return module_sample("decoder", name, use,
                       {indices(shape, seed, kVocab), indices(shape, seed + 1, kVocab)})
      .bounded();
}

void add_decoders(std::vector<Sample>& all) {
  uint64_t seed = 300;
  const auto one = [&](const std::string& name, const Decoder::Options& o) {
    all.push_back(decoder(name, o, {2, 3}, seed += 2));
  };
  for (const auto& [name, kind] : {std::pair{"no positions", PositionKind::none},
                                   {"learned positions", PositionKind::learned},
                                   {"ALiBi", PositionKind::alibi},
                                   {"T5's bias", PositionKind::t5_bias}}) {
    for (const bool tied : {false, true}) {
      Decoder::Options o;
      o.positions.kind = kind, o.positions.buckets = 4, o.positions.max_distance = 4;
      if (kind == PositionKind::alibi) o.block.attention.alibi = 1;
      o.tied_head = tied, o.head_bias = !tied, o.embedding_norm = tied;
      one(std::string(name) + (tied ? ", tied" : ""), o);
    }
  }
  Decoder::Options plain;
  plain.positions.kind = PositionKind::none;
  Decoder::Options losses = plain, scaled = plain, fixed = plain, dropped = plain, mixed = plain;
  losses.label_smoothing = 0.1, losses.z_loss = 0.1, losses.final_soft_cap = 2;
  scaled.embedding_scale = 2, scaled.logit_scale = 0.5, scaled.residual_scales = {0.7};
  fixed.fix_norm = FixNorm::both, fixed.tied_head = true;
  dropped.embedding_dropout = 0.3, dropped.block.dropout = 0.2, dropped.block.residual.drop = 0.3;
  mixed.block.experts.emplace();
  mixed.block.experts->d_ff = 2, mixed.block.experts->experts = 3;
  mixed.block.balance = true, mixed.load_balance_loss = 0.1;
  one("smoothing, z-loss, soft cap", losses);
  one("scaled", scaled);
  one("word vectors of length 1", fixed);
  one("dropout, stochastic depth", dropped);
  one("experts", mixed);
  all.push_back(decoder("one token", plain, {1, 1}, 400));
  all.push_back(decoder("no sequences", plain, {0, 3}, 402));
}

}  // namespace

void add_stack_modules(std::vector<Sample>& all) {
  add_stacks(all);
  add_encoders(all);
  add_encoder_decoders(all);
  add_decoders(all);
}

}  // namespace tally::nn
