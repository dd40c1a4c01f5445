// Encoders and encoder-decoders against models recorded with another framework.
#include "nn/encoder.h"
#include "nn/encoder_decoder.h"
#include "tests/recorded_model.h"

using namespace tally;
using namespace tally::test;

namespace {

nn::Encoder::Options bert() {
  nn::Encoder::Options o;
  o.vocab = 101, o.types = 2, o.padding_id = 0;
  o.stack.layers = 2, o.stack.context = 32;
  o.stack.norm = {nn::NormKind::layer_norm, 0.002, true};
  o.stack.post_norm = o.stack.embedding_norm = true, o.stack.final_norm = false;
  auto& a = o.stack.attention;
  a.d_model = 36, a.heads = a.kv_heads = 3, a.head_dim = 12, a.qkv_bias = a.out_bias = true;
  o.stack.mlp = {36, 60, ops::ActivationKind::gelu, false, true, false};
  o.stack.positions.kind = nn::PositionKind::learned;
  return o;
}
const Rules kBert = {{"encoder.position.", "bert.embeddings.position_embeddings."},
                     {"encoder.embedding_norm.", "bert.embeddings.LayerNorm."},
                     {"encoder.layers.", "bert.encoder.layer."},
                     {"attention.out.", "attention.output.dense."},
                     {"attention_norm.", "attention.output.LayerNorm."},
                     {"attention.q.", "attention.self.query."},
                     {"attention.k.", "attention.self.key."},
                     {"attention.v.", "attention.self.value."},
                     {"mlp_norm.", "output.LayerNorm."},
                     {"mlp.up.", "intermediate.dense."},
                     {"mlp.down.", "output.dense."},
                     {"types.", "bert.embeddings.token_type_embeddings."},
                     {"head.transform.", "cls.predictions.transform.dense."},
                     {"head.norm.", "cls.predictions.transform.LayerNorm."},
                     {"head.bias", "cls.predictions.bias"},
                     {"embedding.weight", "bert.embeddings.word_embeddings.weight"}};

nn::StackOptions t5_stack(bool decoder, int64_t heads, int64_t head_dim, int64_t d_ff, bool gated,
                          int64_t distance) {
  nn::StackOptions o;
  o.layers = 2, o.context = 32;
  o.norm = {nn::NormKind::rms_norm, 0.001};
  auto& a = o.attention;
  a.d_model = 32, a.heads = a.kv_heads = heads, a.head_dim = head_dim;
  a.causal = decoder, a.scale = 1;
  o.d_memory = decoder ? 32 : 0;
  using K = ops::ActivationKind;
  o.mlp = {32, d_ff, gated ? K::gelu_tanh : K::relu, gated, false, false};
  o.positions.kind = nn::PositionKind::t5_bias;
  o.positions.buckets = 8, o.positions.max_distance = distance;
  o.positions.two_sided = !decoder;
  return o;
}
nn::EncoderDecoder::Options t5(bool newer) {
  nn::EncoderDecoder::Options o;
  const auto stack = [&](bool decoder) {
    return newer ? t5_stack(decoder, 4, 6, 44, true, 10) : t5_stack(decoder, 3, 10, 48, false, 12);
  };
  o.vocab = newer ? 103 : 101;
  o.encoder = stack(false), o.decoder = stack(true);
  o.tied_head = !newer;
  if (!newer) o.output_scale = 1 / std::sqrt(32.0);
  return o;
}
const Rules kT5 = {{"cross_attention.", "layer.1.EncDecAttention."},
                   {"cross_norm.", "layer.1.layer_norm."},
                   {"attention_norm.", "layer.0.layer_norm."},
                   {".attention.", ".layer.0.SelfAttention."},
                   {"out.weight", "o.weight"},
                   {"position.weight",
                    "block.0.layer.0.SelfAttention.relative_attention_bias."
                    "weight"},
                   {"layers.", "block."},
                   {"final_norm.", "final_layer_norm."},
                   {"mlp_norm.", "layer.mlp.layer_norm."},
                   {"mlp.gate.", "mlp.DenseReluDense.wi_0."},
                   {"mlp.down.", "mlp.DenseReluDense.wo."},
                   {"embedding.weight", "shared.weight"},
                   {"head.weight", "lm_head.weight"}};
// The place of the feed-forward branch in a layer differs, and so does its first matrix.
Rules t5_rules(bool gated) {
  Rules rules = kT5;
  rules.push_back({"mlp.up.", gated ? "mlp.DenseReluDense.wi_1." : "mlp.DenseReluDense.wi."});
  rules.push_back({"layer.mlp.layer_norm", "mlp.layer_norm"});
  for (const char* layer : {"0", "1"}) {
    const std::string n = layer;
    rules.push_back({"encoder.block." + n + ".mlp.", "encoder.block." + n + ".layer.1."});
    rules.push_back({"decoder.block." + n + ".mlp.", "decoder.block." + n + ".layer.2."});
  }
  return rules;
}

nn::StackOptions marian_stack(bool decoder) {
  nn::StackOptions o;
  o.layers = 2, o.context = 32;
  o.norm = {nn::NormKind::layer_norm, 1e-5, true};
  o.post_norm = true, o.final_norm = false;
  auto& a = o.attention;
  a.d_model = 24, a.heads = a.kv_heads = decoder ? 4 : 3, a.head_dim = 24 / a.heads;
  a.qkv_bias = a.out_bias = true, a.causal = decoder;
  o.d_memory = decoder ? 24 : 0;
  o.mlp = {24, decoder ? 44 : 48, ops::ActivationKind::relu, false, true, false};
  o.positions.kind = nn::PositionKind::sinusoidal;
  o.positions.sinusoid = Sinusoid::halves;
  return o;
}
nn::EncoderDecoder::Options marian() {
  nn::EncoderDecoder::Options o;
  o.vocab = 101, o.padding_id = 0;
  o.encoder = marian_stack(false), o.decoder = marian_stack(true);
  o.embedding_scale = std::sqrt(24.0);
  o.head_bias = true;
  return o;
}
const Rules kMarian = {{"encoder.", "model.encoder."},
                       {"decoder.", "model.decoder."},
                       {"cross_attention.", "encoder_attn."},
                       {"cross_norm.", "encoder_attn_layer_norm."},
                       {"attention_norm.", "self_attn_layer_norm."},
                       {"attention.", "self_attn."},
                       {".q.", ".q_proj."},
                       {".k.", ".k_proj."},
                       {".v.", ".v_proj."},
                       {".out.", ".out_proj."},
                       {"mlp_norm.", "final_layer_norm."},
                       {"mlp.up.", "fc1."},
                       {"mlp.down.", "fc2."},
                       {"embedding.weight", "model.shared.weight"},
                       {"head.bias", "final_logits_bias"}};

// The most likely continuation with the cache, from the token that starts every one.
void check_greedy(const Recorded& r, nn::EncoderDecoder& model) {
  const auto tokens = to_host<int64_t>(r.ids("greedy"));
  const Numbers logits = r.numbers("greedy_logits");
  const auto memory = model.encode(r.ids("greedy_source"), r.mask("greedy_source_mask"));
  const int64_t b = memory.values.size(0), steps = static_cast<int64_t>(tokens.size()) / b,
                v = static_cast<int64_t>(logits.size()) / b / steps;
  auto cache = model.make_cache(memory, steps);
  const int64_t start = to_host<int64_t>(r.ids("decoder_input_ids"))[0];
  std::vector<int64_t> next(static_cast<size_t>(b), start);
  for (int64_t s = 0; s < steps; ++s) {
    const Numbers ours =
        to_doubles(model.next_logits(from_host<int64_t>(next, {b, 1}, r.device), cache));
    for (int64_t i = 0; i < b; ++i) {
      const auto row = ours.begin() + i * v, theirs = logits.begin() + (i * steps + s) * v;
      next[static_cast<size_t>(i)] = std::max_element(row, row + v) - row;
      CHECK(next[static_cast<size_t>(i)] == tokens[static_cast<size_t>(i * steps + s)]);
      check_numbers("greedy logits", {row, row + v}, {theirs, theirs + v}, largest(logits),
                    r.tolerance("tol_logits"));
    }
  }
}

void compare(const std::string& name, const nn::EncoderDecoder::Options& o, const Rules& rules) {
  for (Device device : {kReference, kCPU}) {
    for (DType dtype : {DType::f64, DType::f32}) {
      const Recorded r(name, dtype, device);
      INFO(name << " on " << to_text(device) << " in " << to_text(dtype));
      nn::EncoderDecoder model(o, dtype, device);
      r.load(model, rules);
      const Tensor source = r.ids("input_ids"), mask = r.mask("attention_mask"),
                   ids = r.ids("decoder_input_ids");
      const Tensor logits = model.logits(model.encode(source, mask), ids);
      Tape tape;
      const Tensor loss = model.loss(model.encode(source, mask), ids, r.ids("labels"));
      tape.backward(loss);
      check_results(r, model, rules, logits, loss);
      check_greedy(r, model);
    }
  }
}

}  // namespace

TEST_CASE("encoder: BERT as recorded comes out: logits, loss, gradients", "[model][L10]") {
  register_all();
  for (Device device : {kReference, kCPU}) {
    for (DType dtype : {DType::f64, DType::f32}) {
      const Recorded r("bert", dtype, device);
      INFO("on " << to_text(device) << " in " << to_text(dtype));
      nn::Encoder model(bert(), dtype, device);
      r.load(model, kBert);
      const Tensor ids = r.ids("input_ids"), types = r.ids("token_type_ids"),
                   mask = r.mask("attention_mask");
      const Tensor logits = model.logits(ids, types, mask);
      Tape tape;
      const Tensor loss = model.loss(ids, r.ids("labels"), types, mask);
      tape.backward(loss);
      check_results(r, model, kBert, logits, loss);
    }
  }
}

TEST_CASE("encoder-decoder: T5 1.0 and 1.1 as recorded come out, greedy text too", "[model]") {
  register_all();
  compare("t5_v1_0", t5(false), t5_rules(false));
  compare("t5_v1_1", t5(true), t5_rules(true));
}

TEST_CASE("encoder-decoder: Marian, the Transformer of 2017, as recorded comes out",
          "[model][L5]") {
  register_all();
  compare("marian", marian(), kMarian);
}
