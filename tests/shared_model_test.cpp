// Decoders whose layers share keys and values or have embeddings of their own: parameters, cost,
// caches, training, errors. tests/family_test.cpp holds them to a recorded Gemma 4.
#include <filesystem>

#include "cli/verbs.h"
#include "data/file.h"
#include "models/algebra.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/config_shared.h"
#include "models/convert.h"
#include "models/report.h"
#include "models/zoo.h"
#include "optim/adamw.h"
#include "tests/data_helpers.h"
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

// Windows with small heads, layers that see all with wide ones; the last two take.
ModelConfig small_shared() {
  ModelConfig c;
  c.name = "shared";
  c.layers = 4, c.d_model = 12, c.heads = 2, c.kv_heads = 1, c.head_dim = 4, c.d_ff = 20;
  c.vocab = 17, c.context = 10, c.attention = AttentionKind::shared;
  c.window = 3, c.attention_pattern = {"window", "full"}, c.position_pattern = {"local", "global"};
  c.global_head_dim = 6, c.shared_kv_layers = 2, c.shared_kv_d_ff = 24;
  c.value_norm = true, c.qk_norm = QKNorm::head;
  c.layer_input_dim = 3, c.layer_scale = true;
  c.rope_scaling = RopeScale::proportional, c.rope_fraction = 0.5;
  c.attention_scale = 0.5, c.init_std = 0.4, c.norm_eps = 0.1;
  return c;
}

std::unique_ptr<nn::Decoder> made(const ModelConfig& c, Device device) {
  auto model = build_model(c, DType::f64, device);
  initialise(*model, c, 1);
  model->requires_grad();
  return model;
}

Tensor ids_of(const ModelConfig& c, int64_t t, uint64_t seed, Device device) {
  if (backend(device).is_meta()) return empty({2, t}, DType::i64, device);
  return make_input(indices({2, t}, seed, c.vocab), DType::f64, device);
}

// Every choice of the fields, by the bits of a number.
ModelConfig with_choices(int bits) {
  ModelConfig c = small_shared();
  if (bits & 1) c.keys_as_values = true, c.global_kv_heads = 2;
  if (bits & 2) c.shared_kv_layers = c.shared_kv_d_ff = 0;
  if (bits & 4) c.layer_input_dim = 0;
  if (bits & 8) c.norm_gain = NormGain::one_plus_gamma, c.placement = Placement::double_norm;
  if (bits & 16) c.qk_norm = QKNorm::none, c.value_norm = false, c.mlp_bias = true;
  if (bits & 32)
    c.position = Position::none, c.position_pattern = {}, c.rope_scaling = {}, c.rope_fraction = 1;
  if (bits & 64) c.fused_gate_up = c.layer_scale = false;
  return checked(c);
}

std::string refusal(std::initializer_list<const char*> assignments) {
  RunConfig run{small_shared(), {}};
  return test::message_of([&] {
    for (const char* assignment : assignments) apply_override(run, assignment);
    run.resolve_and_check("f");
  });
}

}  // namespace

TEST_CASE_METHOD(Setup, "shared model: the closed form of parameters holds for every choice",
                 "[config]") {
  for (int bits = 0; bits < 128; ++bits) {
    const ModelConfig c = with_choices(bits);
    const auto model = made(c, kMeta);
    const auto specs = parameter_specs(c), buffers = buffer_specs(c);
    const auto parameters = model->named_parameters();
    REQUIRE(specs.size() == parameters.size());
    int64_t sum = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      CHECK(parameters[i].first == specs[i].name);
      CHECK(parameters[i].second.shape() == Shape(std::span<const int64_t>(specs[i].shape)));
      sum += specs[i].numel();
    }
    REQUIRE(sum == parameter_count(c));
    REQUIRE(model->named_buffers().size() == buffers.size());
  }
}

TEST_CASE_METHOD(Setup, "shared model: decoding with the cache equals the full pass everywhere",
                 "[model]") {
  for (int bits = 0; bits < 64; ++bits) {
    const ModelConfig c = with_choices(bits);
    for (const Device device : {kReference, kCPU}) {
      const auto model = made(c, device);
      const Tensor ids = ids_of(c, 10, 1, device), whole = model->logits(ids);
      nn::KVCache cache = model->make_cache(2, 10);
      for (int64_t at = 0; at < 10;) {
        const int64_t count = at == 0 ? 3 : at == 5 ? 2 : 1;
        const Tensor next = model->next_logits(copy(ids.narrow(1, at, count)), cache);
        at += count;
        INFO("choices " << bits << ", token " << at);
        CHECK(largest_difference(next, copy(whole.narrow(1, at - 1, 1)).reshape(next.shape())) <=
              1e-12);
      }
      ReportOptions o;
      o.batch = 2, o.seq = 9, o.decode = true, o.dtype = DType::f64;
      CHECK(make_report(c, o).kv_cache == double(cache.nbytes()));
    }
  }
}

TEST_CASE_METHOD(Setup, "shared model: every formula of the algebra equals the count",
                 "[account]") {
  for (int bits = 0; bits < 64; ++bits) {
    const ModelConfig c = with_choices(bits);
    for (int mode = 0; mode < 3; ++mode) {
      ReportOptions o;
      o.batch = 3, o.seq = 7, o.train = mode == 0, o.decode = mode == 1;
      int compared = 0;
      for (const Formula& f : algebra(make_report(c, o))) {
        INFO("choices " << bits << ", mode " << mode << ": " << f.what << " = " << f.formula);
        if (!std::isfinite(f.counted) || f.what == "rule of thumb") continue;
        CHECK(f.value == Approx(f.counted).epsilon(1e-12));
        ++compared;
      }
      CHECK(compared >= 8);
    }
  }
}

TEST_CASE_METHOD(Setup, "shared model: learns a batch by heart, on the reference and the cpu alike",
                 "[model]") {
  ModelConfig c = checked(small_shared());
  c.attention_dropout = c.residual_dropout = 0.05;
  std::vector<double> losses[2];
  for (Device device : {kReference, kCPU}) {
    const auto model = made(c, device);
    optim::AdamW optimizer(optim::decay_groups(*model, 0.01), {});
    Generator dropout(3);
    const Tensor ids = ids_of(c, 8, 1, device), targets = ids_of(c, 8, 2, device);
    for (int step = 0; step < 60; ++step) {
      Tape tape;
      const Tensor loss = model->loss(ids, targets, 0, &dropout);
      losses[device == kCPU].push_back(loss.item());
      tape.backward(loss);
      optimizer.step(0.02);
      model->zero_grad();
    }
  }
  INFO(losses[0].front() << " to " << losses[0].back());
  CHECK(losses[0].back() < 0.4 * losses[0].front());
  for (size_t i = 0; i < losses[0].size(); ++i)
    CHECK(std::fabs(losses[0][i] - losses[1][i]) <= 1e-9 * losses[0][i]);
}

TEST_CASE_METHOD(Setup, "shared model: a step on meta has the ledger of a real one", "[model]") {
  const ModelConfig c = checked(small_shared());
  const auto text = [&](Device device) {
    const auto model = made(c, device);
    Generator dropout(1);
    const Ledger ledger;
    Tape tape;
    tape.backward(model->loss(ids_of(c, 6, 1, device), ids_of(c, 6, 2, device), 0, &dropout));
    return ledger.text();
  };
  CHECK(text(kCPU) == text(kMeta));
  CHECK(text(kMeta).size() > 5000);
}

TEST_CASE_METHOD(Setup, "shared model: every parameter passes tally gradcheck", "[model]") {
  for (const int bits : {0, 1, 2, 8}) {
    const test::TemporaryFolder folder;
    write_file_atomic(folder / "shared.json", to_json_text(RunConfig{with_choices(bits), {}}));
    cli::GradcheckOptions o;
    o.what = folder / "shared.json", o.quiet = o.json = true;
    CHECK(cli::gradcheck(o) == 0);
  }
}

TEST_CASE_METHOD(Setup, "shared model: a cache keeps nothing for layers that take",
                 "[model][L98]") {
  ModelConfig c = small_shared();
  const double makes = [&] {
    ReportOptions o;
    o.batch = 1, o.seq = 9, o.decode = true, o.dtype = DType::f32;
    return make_report(checked(c), o).kv_cache;
  }();
  // One layer with a window of 3 and heads of 4, one that sees all 10 with heads of 6.
  CHECK(makes == 4 * 2 * (3 * 4 + 10 * 6));
}

TEST_CASE("shared model: what does not fit is refused by name", "[config][error]") {
  CHECK(refusal({"model.seed=1"}) != "accepted");
  CHECK(refusal({"model.vocab=18"}) == "accepted");
  CHECK_THAT(refusal({"model.attention=heads"}),
             Contains("global_head_dim needs attention = shared; leave it out"));
  CHECK_THAT(refusal({"model.shared_kv_layers=4"}), Contains("must be below layers = 4"));
  CHECK_THAT(refusal({"model.shared_kv_layers=3"}),
             Contains("layer 1 sees all, and no layer before 1 does"));
  CHECK_THAT(refusal({"model.global_kv_heads=3"}), Contains("must be a multiple of"));
  CHECK_THAT(refusal({"model.position_pattern=[\"global\"]"}),
             Contains("would take the positions of the other layers"));
  CHECK_THAT(refusal({"model.head_dim=5"}), Contains("must be even"));
  CHECK_THAT(refusal({"model.shared_kv_layers=0"}), Contains("shared_kv_d_ff = 24 needs"));
  CHECK_THAT(refusal({"model.embedding_dim=8"}), Contains("layer_input_dim = 3 needs"));
  CHECK_THAT(refusal({"train.recompute=all"}), Contains("Set recompute to none"));
  for (const char* assignment :
       {"model.qkv_bias=true", "model.attention_output_bias=true", "model.qk_norm=full",
        "model.qkv_clip=2", "model.attention_sink=true", "model.attention_gate=true",
        "model.attention_global=1", "model.attention_prefix=2",
        "model.mixer_pattern=[\"attention\"]"}) {
    const std::string field(std::string_view(assignment).substr(6));
    CHECK_THAT(refusal({assignment}),
               Contains(field.substr(0, field.find('=')) + " has no place in attention = shared"));
  }
  RunConfig encoder = find_preset("bert-base").config;
  encoder.model.layer_scale = true;
  CHECK_THAT(test::message_of([&] { encoder.resolve_and_check("f"); }),
             Contains("layer_scale has no meaning for architecture = encoder"));
  CHECK_THROWS_WITH(with_kv_heads(checked(small_shared()), 1),
                    Contains("only the heads of attention = heads"));
}
