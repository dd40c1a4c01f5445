// Encoders and encoder-decoders: training, decoding, cost, errors.
#include "nn/encoder_decoder.h"
#include "nn/encoder.h"
#include "optim/adamw.h"
#include "tests/layer_values.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kVocab = 12, kWidth = 8, kLength = 6;

nn::StackOptions stack_options(bool decoder, nn::PositionKind positions, bool post_norm) {
  nn::StackOptions o;
  o.layers = 2, o.context = kLength + 2;
  o.norm = {nn::NormKind::layer_norm, 1e-5, true};
  o.post_norm = post_norm, o.final_norm = !post_norm;
  auto& a = o.attention;
  a.d_model = kWidth, a.heads = 4, a.kv_heads = 2, a.head_dim = 3, a.causal = decoder;
  a.qkv_bias = a.out_bias = true, a.fused = decoder;
  o.d_memory = decoder ? kWidth : 0;
  o.mlp = {kWidth, 12, ops::ActivationKind::gelu, decoder, true, true};
  o.positions.kind = positions;
  o.positions.buckets = 8, o.positions.max_distance = 6, o.positions.two_sided = !decoder;
  o.dropout = o.embedding_dropout = o.attention.dropout = 0.05;
  return o;
}

nn::Encoder::Options encoder_options() {
  nn::Encoder::Options o;
  o.vocab = kVocab, o.types = 2, o.padding_id = 0;
  o.stack = stack_options(false, nn::PositionKind::learned, true);
  o.stack.embedding_norm = true;
  return o;
}

nn::EncoderDecoder::Options both_options(bool t5) {
  nn::EncoderDecoder::Options o;
  const auto positions = t5 ? nn::PositionKind::t5_bias : nn::PositionKind::sinusoidal;
  o.vocab = kVocab;
  o.encoder = stack_options(false, positions, !t5);
  o.decoder = stack_options(true, positions, !t5);
  o.tied_head = t5, o.head_bias = !t5;
  return o;
}

// Norms 1, biases 0, matrices small: as models begin.
void begin(nn::Module& model, Device device) {
  uint64_t seed = 50;
  model.for_each_parameter([&](const std::string& name, Tensor& p) {
    const bool norm = name.find("norm.weight") != std::string::npos;
    p = p.ndim() == 1 ? full(p.shape(), norm, p.dtype(), device)
                      : random(p.shape(), seed++, device, 0.3);
  });
  model.requires_grad();
}

Tensor ids_of(uint64_t seed, Device device, int64_t length = kLength) {
  return make_input(indices({4, length}, seed, kVocab), DType::f64, device);
}

// The losses of 80 steps on one batch.
template <class Loss>
Numbers train(nn::Module& model, const Loss& loss_of) {
  optim::AdamW optimizer(optim::decay_groups(model, 0.01), {});
  Generator dropout(3);
  Numbers losses;
  for (int step = 0; step < 80; ++step) {
    Tape tape;
    const Tensor loss = loss_of(&dropout);
    losses.push_back(loss.item());
    tape.backward(loss);
    optimizer.step(0.02);
    model.zero_grad();
  }
  return losses;
}

Numbers train_encoder(Device device) {
  nn::Encoder model(encoder_options(), DType::f64, device);
  begin(model, device);
  // Every third token is hidden behind id 1 and asked for; the last sequence ends in padding.
  std::vector<int64_t> ids = to_host<int64_t>(ids_of(1, device)), targets(ids.size(), -100), types;
  std::vector<uint8_t> mask(ids.size(), 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    types.push_back(i % kLength >= 3);
    if (i >= ids.size() - 2) mask[i] = 0;
    if (i % 3 == 0) targets[i] = ids[i], ids[i] = 1;
  }
  const Shape shape{4, kLength};
  const auto tensor = [&](const std::vector<int64_t>& v) {
    return from_host<int64_t>(v, shape, device);
  };
  return train(model, [&](Generator* dropout) {
    return model.loss(tensor(ids), tensor(targets), tensor(types),
                      from_host<uint8_t>(mask, shape, device), dropout);
  });
}

Numbers train_both(Device device, bool t5) {
  nn::EncoderDecoder model(both_options(t5), DType::f64, device);
  begin(model, device);
  const Tensor source = ids_of(1, device), ids = ids_of(2, device), targets = ids_of(3, device);
  return train(model, [&](Generator* dropout) {
    return model.loss(model.encode(source, {}, dropout), ids, targets, dropout);
  });
}

void check_training(const Numbers& reference, const Numbers& cpu) {
  CHECK(reference.front() > 2);
  CHECK(reference.back() < 0.4 * reference.front());
  REQUIRE(reference.size() == cpu.size());
  for (size_t i = 0; i < cpu.size(); ++i)
    CHECK(std::fabs(cpu[i] - reference[i]) <= 1e-9 * reference[i]);
}

}  // namespace

TEST_CASE_METHOD(Setup, "encoder: learns a batch by heart, on the reference and the cpu alike",
                 "[model]") {
  check_training(train_encoder(kReference), train_encoder(kCPU));
}

TEST_CASE_METHOD(Setup,
                 "encoder-decoder: learns a batch by heart, on the reference and the cpu alike",
                 "[model]") {
  for (bool t5 : {true, false}) check_training(train_both(kReference, t5), train_both(kCPU, t5));
}

TEST_CASE_METHOD(Setup, "encoder-decoder: decoding with the cache equals the full pass",
                 "[model]") {
  for (Device device : {kReference, kCPU}) {
    for (bool t5 : {true, false}) {
      nn::EncoderDecoder model(both_options(t5), DType::f64, device);
      begin(model, device);
      const Tensor ids = ids_of(2, device, kLength + 2);
      const auto memory = model.encode(
          ids_of(1, device),
          mask_of({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1},
                  {4, kLength}, device));
      const Tensor whole = model.logits(memory, ids);
      auto cache = model.make_cache(memory, kLength + 2);
      for (int64_t t = 0; t < kLength + 2; t += t == 0 ? 3 : 1) {  // three tokens, then one by one
        const int64_t count = t == 0 ? 3 : 1;
        const Tensor one = model.next_logits(copy(ids.narrow(1, t, count)), cache);
        const Tensor row = copy(whole.narrow(1, t + count - 1, 1));
        CHECK(largest_difference(one, row.reshape({4, kVocab})) <= 1e-13);
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "encoder: a token sees what follows; a decoder's does not", "[model]") {
  nn::Encoder encoder(encoder_options(), DType::f64, kReference);
  nn::EncoderDecoder both(both_options(true), DType::f64, kReference);
  begin(encoder, kReference), begin(both, kReference);
  const Tensor ids = i64({1, 2, 3, 4}, {1, 4}), other = i64({1, 2, 3, 5}, {1, 4}),
               types = i64({0, 0, 1, 1}, {1, 4});
  const auto first = [](const Tensor& logits) { return numbers(copy(logits.narrow(1, 0, 3))); };
  CHECK(first(encoder.logits(ids, types)) != first(encoder.logits(other, types)));
  CHECK(numbers(both.encode(ids).values) != numbers(both.encode(other).values));
  const auto memory = both.encode(ids);
  CHECK(first(both.logits(memory, ids)) == first(both.logits(memory, other)));
}

TEST_CASE_METHOD(Setup, "encoder-decoder: a step on meta has the ledger of a real one", "[model]") {
  const auto text = [](Device device) {
    nn::EncoderDecoder model(both_options(true), DType::f64, device);
    nn::Encoder encoder(encoder_options(), DType::f64, device);
    for (nn::Module* m : {static_cast<nn::Module*>(&model), static_cast<nn::Module*>(&encoder)}) {
      m->for_each_parameter(
          [&](const std::string&, Tensor& p) { p = full(p.shape(), 0.1, p.dtype(), device); });
      m->requires_grad();
    }
    const auto tokens = [&] { return zeros({2, 3}, DType::i64, device); };
    Generator dropout(1);
    const Ledger ledger;
    Tape tape;
    tape.backward(model.loss(model.encode(tokens(), {}, &dropout), tokens(), tokens(), &dropout));
    tape.backward(encoder.loss(tokens(), tokens(), tokens(), {}, &dropout));
    return ledger.text();
  };
  CHECK(text(kCPU) == text(kMeta));
  CHECK(text(kMeta).size() > 5000);
}

TEST_CASE_METHOD(Setup, "encoder-decoder: choices that do not go together are errors",
                 "[model][error]") {
  const auto make = [](const nn::EncoderDecoder::Options& o) {
    nn::EncoderDecoder(o, DType::f32, kReference);
  };
  auto o = both_options(true);
  o.decoder.attention.causal = false, o.decoder.positions.two_sided = true;
  CHECK_THROWS_WITH(make(o), Contains("decoder must be causal"));
  o = both_options(true);
  o.decoder.d_memory = kWidth + 1;
  CHECK_THROWS_WITH(make(o), Contains("d_memory must be the encoder's width 8; got 8 and 9"));
  o = both_options(true);
  o.encoder.positions.two_sided = false;
  CHECK_THROWS_WITH(make(o), Contains("set positions.two_sided"));
  o = both_options(true);
  o.encoder.positions.kind = nn::PositionKind::rope;
  CHECK_THROWS_WITH(make(o), Contains("none, learned, sinusoidal or t5_bias"));
  auto e = encoder_options();
  e.stack.attention.causal = true;
  CHECK_THROWS_WITH(nn::Encoder(e, DType::f32, kReference), Contains("must not be causal"));

  nn::Encoder encoder(encoder_options(), DType::f64, kReference);
  begin(encoder, kReference);
  const Tensor ids = ids_of(1, kReference);
  CHECK_THROWS_WITH(encoder.logits(ids), Contains("type of each token is missing"));
  CHECK_THROWS_WITH(encoder.logits(ids, i64({0}, {1, 1})), Contains("types must be (B, T) as ids"));
  CHECK_THROWS_WITH(encoder.logits(ids.reshape({4 * kLength})), Contains("ids must be (B, T)"));
  const Tensor longer = ids_of(1, kReference, 9);
  CHECK_THROWS_WITH(encoder.logits(longer, zeros(longer.shape(), DType::i64, kReference)),
                    Contains("context holds 8 tokens; got 0 before and 9"));
  nn::Stack decoder(stack_options(true, nn::PositionKind::none, false), DType::f64, kReference);
  const Tensor x = random({1, 2, kWidth}, 1, kReference);
  CHECK_THROWS_WITH(decoder.forward(x, {}), Contains("look at a memory, which is missing"));
  CHECK_THROWS_WITH(encoder.stack.forward(x, {}, {x, {}}), Contains("look at no memory"));
  CHECK_THROWS_WITH(encoder.stack.forward(ids, {}), Contains("x must be (B, T, D) with D = 8"));
  CHECK_THROWS_WITH(encoder.stack.make_cache({}, 1, 2), Contains("only causal attention"));
  nn::EncoderDecoder both(both_options(true), DType::f64, kReference);
  CHECK_THROWS_WITH(both.encode(x), Contains("encoder_decoder: ids must be (B, T)"));
}
