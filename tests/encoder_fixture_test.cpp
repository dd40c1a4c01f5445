// Encoders and encoder-decoders, built from configurations, against models recorded with another
// framework.
#include "models/architecture.h"
#include "tests/recorded_model.h"

using namespace tally;
using namespace tally::test;

namespace {

ModelConfig checked(ModelConfig c) {
  c.resolve();
  c.check();
  return c;
}

// What all of them share: parts apart, as the recorded weights are, and a table for 32 tokens.
ModelConfig recorded(Architecture architecture, int64_t vocab, int64_t d_model, int64_t heads,
                     int64_t d_ff) {
  ModelConfig c;
  c.architecture = architecture;
  c.layers = 2, c.context = 32, c.vocab = vocab, c.d_model = d_model, c.heads = heads;
  c.d_ff = d_ff, c.gated = c.fused_qkv = c.fused_gate_up = false;
  return c;
}

ModelConfig bert() {
  ModelConfig c = recorded(Architecture::encoder, 101, 36, 3, 60);
  c.segment_types = 2, c.padding_id = 0;
  c.norm = Norm::layer_norm, c.norm_eps = 0.002, c.norm_bias = true;
  c.placement = Placement::post, c.embedding_norm = true;
  c.qkv_bias = c.attention_output_bias = c.mlp_bias = c.head_bias = c.tied_head = true;
  c.activation = Activation::gelu, c.position = Position::learned;
  return checked(c);
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

ModelConfig t5(bool newer) {
  ModelConfig c = recorded(Architecture::encoder_decoder, newer ? 103 : 101, 32, newer ? 4 : 3,
                           newer ? 44 : 48);
  c.head_dim = newer ? 6 : 10, c.norm_eps = 0.001, c.attention_scale = 1;
  c.gated = newer, c.activation = newer ? Activation::gelu_tanh : Activation::relu;
  c.position = Position::t5_bias, c.t5_buckets = 8, c.t5_max_distance = newer ? 10 : 12;
  c.tied_head = !newer;
  if (!newer) c.logit_scale = 1 / std::sqrt(32.0);
  return checked(c);
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

ModelConfig marian() {
  ModelConfig c = recorded(Architecture::encoder_decoder, 101, 24, 4, 44);
  c.encoder_heads = 3, c.encoder_d_ff = 48, c.padding_id = 0;
  c.norm = Norm::layer_norm, c.norm_bias = true, c.placement = Placement::post;
  c.qkv_bias = c.attention_output_bias = c.mlp_bias = c.head_bias = c.tied_head = true;
  c.activation = Activation::relu, c.embedding_scale = std::sqrt(24.0);
  c.position = Position::sinusoidal, c.sinusoid_layout = SinusoidLayout::halves;
  return checked(c);
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

void compare(const std::string& name, const ModelConfig& config, const Rules& rules) {
  for (Device device : {kReference, kCPU}) {
    for (DType dtype : {DType::f64, DType::f32}) {
      const Recorded r(name, dtype, device);
      INFO(name << " on " << to_text(device) << " in " << to_text(dtype));
      const auto built = build_encoder_decoder(config, dtype, device);
      nn::EncoderDecoder& model = *built;
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
      const auto built = build_encoder(bert(), dtype, device);
      nn::Encoder& model = *built;
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
