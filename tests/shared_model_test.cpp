// Decoders whose layers share keys and values or have embeddings of their own: parameters, cost,
// caches, training, errors. tests/family_test.cpp holds them to a recorded Gemma 4.

#include "models/config_json.h"
#include "models/config_shared.h"
#include "models/convert.h"
#include "models/report.h"
#include "models/zoo.h"
#include "tests/decoder_checks.h"
#include "tests/message_of.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

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
  return message_of([&] {
    for (const char* assignment : assignments) apply_override(run, assignment);
    run.resolve_and_check("f");
  });
}

}  // namespace

TEST_CASE_METHOD(Setup, "shared model: the closed form of parameters holds for every choice",
                 "[config]") {
  for (int bits = 0; bits < 128; ++bits) check_closed_form(with_choices(bits));
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
  for (int bits = 0; bits < 64; ++bits) check_algebra(with_choices(bits), 8);
}

TEST_CASE_METHOD(Setup, "shared model: learns a batch by heart, on the reference and the cpu alike",
                 "[model]") {
  ModelConfig c = checked(small_shared());
  c.attention_dropout = c.residual_dropout = 0.05;
  check_learns_a_batch(c);
}

TEST_CASE_METHOD(Setup, "shared model: a step on meta has the ledger of a real one", "[model]") {
  check_ledger_on_meta(checked(small_shared()));
}

TEST_CASE_METHOD(Setup, "shared model: every parameter passes tally gradcheck", "[model]") {
  for (const int bits : {0, 1, 2, 8}) check_differences(with_choices(bits));
}

TEST_CASE_METHOD(Setup, "shared model: no table decays, the layers' own included", "[model][L67]") {
  const auto model = made(checked(small_shared()), kMeta);
  const auto groups = optim::decay_groups(*model, 0.1);
  for (const auto& [name, t] : groups[0].parameters)
    CHECK(name.find("embedding") == std::string::npos);
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
  CHECK(refusal({"train.recompute=all"}) == "accepted");
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
  CHECK_THAT(message_of([&] { encoder.resolve_and_check("f"); }),
             Contains("layer_scale has no meaning for architecture = encoder"));
  CHECK_THROWS_WITH(with_kv_heads(checked(small_shared()), 1),
                    Contains("only the heads of attention = heads"));
}
