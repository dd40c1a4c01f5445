// Encoders and encoder-decoders that a configuration selects: parameters, cost, caches, training,
// proofs, errors. tests/encoder_fixture_test.cpp holds them to recorded models.
#include "models/architecture.h"

#include <filesystem>

#include "autograd/functional.h"
#include "cli/verbs.h"
#include "data/file.h"
#include "models/algebra.h"
#include "models/build.h"
#include "models/config_attention.h"
#include "models/config_json.h"
#include "optim/adamw.h"
#include "tests/layer_values.h"
#include "tests/message_of.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

ModelConfig checked(ModelConfig c) {
  c.resolve("f");
  c.check("f");
  return c;
}

ModelConfig small_encoder() {
  ModelConfig c;
  c.name = "encoder";
  c.architecture = Architecture::encoder;
  c.layers = 2, c.d_model = 12, c.heads = 3, c.d_ff = 20, c.vocab = 17, c.context = 9;
  c.segment_types = 2, c.padding_id = 0;
  c.norm = Norm::layer_norm, c.norm_bias = true, c.placement = Placement::post;
  c.embedding_norm = c.tied_head = c.head_bias = c.qkv_bias = c.mlp_bias = true;
  c.gated = false, c.activation = Activation::gelu, c.position = Position::learned;
  c.residual_dropout = c.attention_dropout = c.embedding_dropout = 0.1;
  return c;
}

ModelConfig small_both() {
  ModelConfig c;
  c.name = "both";
  c.architecture = Architecture::encoder_decoder;
  c.layers = 2, c.d_model = 12, c.heads = 4, c.kv_heads = 2, c.head_dim = 4, c.d_ff = 20;
  c.vocab = 17, c.context = 9, c.encoder_layers = 3, c.encoder_d_ff = 16;
  c.position = Position::t5_bias, c.t5_buckets = 8, c.t5_max_distance = 6;
  c.attention_scale = 1, c.label_smoothing = 0.1, c.z_loss = 1e-3;
  c.residual_dropout = c.attention_dropout = c.embedding_dropout = 0.1;
  return c;
}

// Integers of a batch, other ones with each call, the same ones in each batch.
MakeIds batch_ids(int64_t b, int64_t t, Device device) {
  return [=, seed = uint64_t{1}](int64_t bound) mutable {
    if (backend(device).is_meta()) return empty({b, t}, DType::i64, device);
    return make_input(indices({b, t}, seed++, bound), DType::i64, device);
  };
}

ModelOnBatch made(const ModelConfig& c, Device device, int64_t b = 2, int64_t t = 6,
                  DType dtype = DType::f64) {
  ModelOnBatch m = build_on_batch(c, dtype, device, batch_ids(b, t, device));
  initialise(*m.module, c, 1);
  m.module->requires_grad();
  return m;
}

std::string refusal(ModelConfig c, const char* assignment) {
  RunConfig run{std::move(c), {}};
  return test::message_of([&] {
    apply_override(run, assignment);
    run.resolve_and_check("f");
  });
}

}  // namespace

TEST_CASE_METHOD(Setup, "architecture: the closed form of parameters holds for every choice",
                 "[config]") {
  for (int bits = 0; bits < 512; ++bits) {
    ModelConfig c = bits & 1 ? small_encoder() : small_both();
    const bool encoder = c.architecture == Architecture::encoder;
    c.qkv_bias = bits & 2, c.attention_output_bias = bits & 4, c.mlp_bias = bits & 8;
    c.head_bias = encoder || bits & 16, c.tied_head = encoder || bits & 32, c.gated = bits & 64;
    c.fused_qkv = bits & 128;
    if (bits & 256) {
      const ModelConfig plain;
      c.position = Position::learned, c.position_offset = 2, c.embedding_norm = false;
      c.t5_buckets = plain.t5_buckets, c.t5_max_distance = plain.t5_max_distance;
    }
    if (bits & 4) c.norm_gain = NormGain::none, c.norm_bias = false;
    if (bits & 8) c.placement = Placement::pre;
    if (!encoder && bits & 2) c.kv_heads = 4, c.encoder_heads = 2;
    c = checked(c);
    int64_t sum = 0;
    for (const ParameterSpec& p : parameter_specs(c)) sum += p.numel();
    REQUIRE(sum == parameter_count(c));
  }
}

TEST_CASE_METHOD(Setup, "architecture: an encoder's heads may be others than the decoder's",
                 "[config]") {
  ModelConfig c = small_both();
  c.kv_heads = 4, c.encoder_heads = 8;
  const auto model = build_encoder_decoder(checked(c), DType::f32, kMeta);
  CHECK(model->encoder.position.weight.shape() == Shape{8, 8});
  CHECK(model->decoder.position.weight.shape() == Shape{8, 4});
  CHECK(model->encoder.layers.size() == 3);
  CHECK(model->decoder.layers.size() == 2);
  CHECK(model->encoder.layers[0]->mlp.down.weight.shape() == Shape{12, 16});
}

TEST_CASE_METHOD(Setup, "architecture: the account on meta is that of the real pass", "[account]") {
  for (const ModelConfig& given : {small_encoder(), small_both()}) {
    const ModelConfig c = checked(given);
    for (Device device : {kReference, kCPU}) {
      ReportOptions o;
      o.batch = 2, o.seq = 6, o.dtype = DType::f32;
      const ModelOnBatch m = made(c, device, 2, 6, DType::f32);
      Ledger forward;
      static_cast<void>(m.logits());
      CHECK(make_report(c, o).cost.flops == forward.total().flops);
      CHECK(make_report(c, o).model.full == forward.model_total().full);

      optim::AdamW optimizer(optim::decay_groups(*m.module, 0.1), {});
      auto& model = dynamic_cast<nn::LanguageModel&>(*m.module);
      const bool reads = c.architecture == Architecture::encoder_decoder;
      Generator dropout;
      Ledger step;
      {
        Tape tape;
        Tensor stats;
        const MakeIds make = batch_ids(2, 6, device);
        const nn::ModelBatch batch{make(17), make(17), reads ? make(17) : Tensor(), {}};
        const Tensor share = full({}, 1, DType::f32, device);  // 1 / targets that count
        tape.backward(mul(model.batch_loss(batch, 1, &dropout, &stats), share));
      }
      const auto clipped = optim::clip_factor(optimizer.groups(), 1);
      optimizer.step(1e-3, clipped.factor);
      o.train = true;
      const Report r = make_report(c, o);
      CHECK(r.cost.flops == step.total().flops);
      CHECK(r.cost.bytes_read == step.total().bytes_read);
      CHECK(r.entries.size() == step.entries().size());
      CHECK(r.parameters.total() == m.module->parameter_count());
      CHECK(r.saved > 0);
      CHECK(r.peak > r.weights + r.gradients);
    }
  }
}

TEST_CASE_METHOD(Setup, "architecture: the account's cache is the one that decoding fills",
                 "[account]") {
  const ModelConfig c = checked(small_both());
  const auto model = build_encoder_decoder(c, DType::f32, kMeta);
  const auto ids = [](int64_t t) { return empty({3, t}, DType::i64, kMeta); };
  const auto cache = model->make_cache(model->encode(ids(5)), 6);
  size_t bytes = cache.tokens.nbytes();
  for (const auto& m : cache.memory) bytes += m.k.nbytes() + m.v.nbytes();
  ReportOptions o;
  o.batch = 3, o.seq = 5, o.decode = true;
  const Report r = make_report(c, o);
  CHECK(r.kv_cache == double(bytes));
  CHECK(r.kv_cache_per_token == 2.0 * 2 * 2 * 4 * 4);  // k and v, layers, G, K, bytes
  CHECK(make_report(checked(small_encoder()), {}).kv_cache == 0);
  o.decode = false;
  CHECK(r.cost.flops < make_report(c, o).cost.flops / 5);
}

TEST_CASE_METHOD(Setup, "architecture: a configured model learns a batch by heart", "[model]") {
  for (const ModelConfig& given : {small_encoder(), small_both()}) {
    const ModelConfig c = checked(given);
    std::vector<double> losses[2];
    for (Device device : {kReference, kCPU}) {
      const ModelOnBatch m = made(c, device, 4);
      optim::AdamW optimizer(optim::decay_groups(*m.module, 0.01), {});
      Generator dropout(3);
      for (int step = 0; step < 60; ++step) {
        Tape tape;
        const Tensor loss = m.loss(&dropout);
        losses[device == kCPU].push_back(loss.item());
        tape.backward(loss);
        optimizer.step(0.02);
        m.module->zero_grad();
      }
    }
    INFO(c.name << ": " << losses[0].front() << " to " << losses[0].back());
    CHECK(losses[0].front() > 2);
    CHECK(losses[0].back() < 0.6 * losses[0].front());
    for (size_t i = 0; i < losses[0].size(); ++i)
      CHECK(std::fabs(losses[0][i] - losses[1][i]) <= 1e-9 * losses[0][i]);
  }
}

TEST_CASE_METHOD(Setup, "architecture: label smoothing and z_loss are added to the loss",
                 "[model][L71]") {
  for (const ModelConfig& given : {small_encoder(), small_both()}) {
    ModelConfig plain = checked(given), more = plain;
    plain.label_smoothing = plain.z_loss = 0, more.label_smoothing = 0.2, more.z_loss = 0.1;
    const ModelOnBatch m = made(more, kReference);
    MakeIds ids = batch_ids(2, 6, kReference);
    ids(17);
    const Tensor targets = ids(17), logits = m.logits();
    ops::LossOptions o;
    o.label_smoothing = 0.2, o.z_loss = 0.1;
    CHECK(m.loss(nullptr).item() ==
          Approx(cross_entropy(logits, targets, o).item()).epsilon(1e-13));
    CHECK(made(plain, kReference).loss(nullptr).item() ==
          Approx(cross_entropy(logits, targets).item()).epsilon(1e-13));
  }
}

TEST_CASE_METHOD(Setup, "architecture: a document selects it, and is written as it was read",
                 "[config]") {
  const std::string text = to_json_text(RunConfig{small_both(), {}});
  CHECK_THAT(text, Contains("\"architecture\": \"encoder_decoder\""));
  CHECK(run_config_from_json(text, "f").model == small_both());
}

TEST_CASE_METHOD(Setup, "architecture: fields that it would ignore are refused by name",
                 "[config][error]") {
  RunConfig demo{checked(small_encoder()), {}};
  demo.model.architecture = Architecture::decoder;
  demo.model.embedding_norm = false;
  CHECK_THAT(refusal(demo.model, "model.layers=2"),
             Contains("segment_types needs architecture = encoder;"));
  demo.model.segment_types = 0;
  CHECK_THAT(refusal(demo.model, "model.layers=2"), Contains("padding_id needs architecture"));
  demo.model.padding_id = -1;
  for (const char* field : {"encoder_layers", "encoder_heads", "encoder_d_ff"})
    CHECK_THAT(refusal(demo.model, (std::string("model.") + field + "=2").c_str()),
               Contains(std::string(field) + " needs architecture = encoder_decoder"));

  const ModelConfig encoder = small_encoder(), both = small_both();
  for (const char* assignment :
       {"model.attention_prefix=4", "model.stochastic_depth=0.1", "model.experts=4",
        "model.qk_norm=head", "model.residual_scale=2", "model.final_soft_cap=30",
        "model.attention_gate=true", "model.attention_sink=true", "model.fix_norm=head"}) {
    const std::string field(std::string_view(assignment).substr(6));
    for (const ModelConfig& c : {encoder, both})
      CHECK_THAT(refusal(c, assignment), Contains(field.substr(0, field.find('=')) +
                                                  " has no meaning for architecture = enco"));
  }
  CHECK_THAT(refusal(encoder, "model.logit_scale=2"), Contains("logit_scale has no meaning"));
  CHECK_THAT(refusal(both, "model.window=4"), Contains("window has no meaning"));
  CHECK_THAT(refusal(both, "model.document_end=4"), Contains("document_end has no meaning"));
  CHECK_THAT(refusal(both, "model.segment_types=2"), Contains("segment_types has no meaning"));
  CHECK_THAT(refusal(encoder, "model.position=rope"), Contains("t5_bias; got rope"));
  CHECK_THAT(refusal(both, "model.placement=double"), Contains("pre or post; got double"));
  CHECK_THAT(refusal(encoder, "model.tied_head=false"), Contains("set tied_head and head_bias"));
  CHECK_THAT(refusal(encoder, "model.padding_id=17"), Contains("below vocab = 17; got 17"));
  CHECK_THAT(refusal(both, "model.encoder_heads=2"), Contains("kv_heads must equal heads"));
  CHECK_THAT(refusal(both, "model.encoder_d_ff=4194304"), Contains("accepted"));
  CHECK_THAT(refusal(both, "model.architecture=encoderdecoder"),
             Contains("did you mean \"encoder_decoder\"?"));
}

TEST_CASE_METHOD(Setup, "architecture: what is for decoders says so", "[model][error]") {
  const ModelConfig encoder = checked(small_encoder()), both = checked(small_both());
  CHECK_THROWS_WITH(build_model(encoder, DType::f32, kMeta),
                    Contains("has architecture = encoder; this is for decoders"));
  CHECK_THROWS_WITH(build_encoder(both, DType::f32, kMeta),
                    Contains("build_encoder: both has architecture = encoder_decoder"));
  CHECK_THROWS_WITH(build_encoder_decoder(encoder, DType::f32, kMeta),
                    Contains("encoder has architecture = encoder"));
  ReportOptions o;
  o.decode = true;
  CHECK_THROWS_WITH(make_report(encoder, o), Contains("an encoder writes no text"));
  o.decode = false, o.train = true;
  CHECK_FALSE(choose_recompute(both, o, 100).fits);
  CHECK_THROWS_WITH(algebra(make_report(both, o)), Contains("leave out --algebra"));
}

TEST_CASE_METHOD(Setup, "architecture: every parameter passes tally gradcheck", "[model]") {
  for (ModelConfig c : {small_encoder(), small_both()}) {
    c.init_std = 0.4;  // or queries have gradients that drown in the rounding of the loss
    const std::string path =
        (std::filesystem::temp_directory_path() / ("tally_" + c.name + ".json")).string();
    write_file_atomic(path, to_json_text(RunConfig{c, {}}));
    cli::GradcheckOptions o;
    o.what = path, o.quiet = o.json = true;
    CHECK(cli::gradcheck(o) == 0);
    std::filesystem::remove(path);
  }
}
