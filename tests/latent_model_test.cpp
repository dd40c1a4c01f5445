// Decoders whose configuration asks for latent attention: parameters, cost, caches, training, errors.
// tests/family_test.cpp holds them to recorded models, tests/latent_attention_test.cpp the layer to
// its definition.

#include "models/config_attention.h"
#include "models/config_json.h"
#include "models/config_latent.h"
#include "models/convert.h"
#include "models/report.h"
#include "models/zoo.h"
#include "tests/decoder_checks.h"
#include "tests/message_of.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

ModelConfig small_latent(int64_t q_rank = 5) {
  ModelConfig c;
  c.name = "latent";
  c.layers = 2, c.d_model = 12, c.heads = 3, c.d_ff = 20, c.vocab = 17, c.context = 10;
  c.attention = AttentionKind::latent;
  c.q_lora_rank = q_rank, c.kv_lora_rank = 6;
  c.qk_nope_head_dim = 4, c.qk_rope_head_dim = 2, c.v_head_dim = 3;
  c.rope_layout = RopeLayout::interleaved;
  c.init_std = 0.4;
  return c;
}

// Sinks begin at 0, where they would hide a wrong sign.
void set_sinks(nn::Decoder& model) {
  uint64_t seed = 50;
  model.for_each_parameter([&](const std::string& name, Tensor& p) {
    if (name.ends_with("sink")) p = make_input(normal(p.shape(), seed++), DType::f64, p.device());
  });
}

// Ids, of which the first text ends with token 7 before its fifth and its eighth.
Tensor texts(const ModelConfig& c, Device device) {
  auto ids = to_host<int64_t>(ids_of(c, 10, 1, device));
  ids[3] = ids[6] = 7;
  return from_host<int64_t>(ids, {2, 10}, device);
}

std::string refusal(std::initializer_list<const char*> assignments) {
  RunConfig run{small_latent(), {}};
  return message_of([&] {
    for (const char* assignment : assignments) apply_override(run, assignment);
    run.resolve_and_check("f");
  });
}

}  // namespace

TEST_CASE_METHOD(Setup, "latent model: the closed form of parameters holds for every choice",
                 "[config][L96]") {
  for (int bits = 0; bits < 128; ++bits) {
    ModelConfig c = small_latent(bits & 1 ? 5 : 0);
    c.norm_gain = bits & 2 ? NormGain::none : NormGain::one_plus_gamma;
    if (bits & 4) c.placement = Placement::double_norm;
    if (bits & 8) c.residual_gain = ResidualGain::scalar;
    if (bits & 16) c.experts = 4, c.shared_experts = 1, c.first_expert_layer = 1;
    if (bits & 32)
      c.position = Position::t5_bias, c.rope_layout = RopeLayout::half, c.t5_buckets = 4,
      c.t5_max_distance = 5;
    if (bits & 64) c.parallel = Parallel::shared_norm, c.attention_sink = true;
    c = checked(c);
    check_closed_form(c);
  }
}

TEST_CASE_METHOD(Setup, "latent model: decoding with the cache equals the full pass everywhere",
                 "[model][F03]") {
  const auto with = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig c = small_latent();
    change(c);
    return checked(c);
  };
  const ModelConfig models[] = {
      with([](ModelConfig&) {}),
      with([](ModelConfig& c) { c.q_lora_rank = 0, c.rope_layout = RopeLayout::half; }),
      with([](ModelConfig& c) { c.window = 4; }),
      with([](ModelConfig& c) {
        c.window = 3, c.attention_pattern = {"full", "window"};
      }),
      with([](ModelConfig& c) { c.attention_soft_cap = 2, c.attention_scale = 0.7; }),
      with([](ModelConfig& c) {
        c.position_pattern = {"global", "none"};
      }),
      with(
          [](ModelConfig& c) { c.position = Position::learned, c.rope_layout = RopeLayout::half; }),
      with([](ModelConfig& c) {
        c.position = Position::t5_bias, c.rope_layout = RopeLayout::half, c.t5_buckets = 4,
        c.t5_max_distance = 5, c.window = 4;
      }),
      with([](ModelConfig& c) { c.attention_sink = true; }),
      with([](ModelConfig& c) { c.softmax_off_by_one = true, c.attention_soft_cap = 2; }),
      with([](ModelConfig& c) { c.document_end = 7; }),
      with([](ModelConfig& c) { c.document_end = 7, c.window = 3, c.attention_sink = true; }),
      with([](ModelConfig& c) {
        c.qk_rope_head_dim = 4, c.rope_scaling = RopeScale::dynamic_ntk, c.rope_factor = 3,
        c.rope_original_context = 4;
      })};
  for (const ModelConfig& c : models) {
    for (Device device : {kReference, kCPU}) {
      const auto model = made(c, device);
      set_sinks(*model);
      const Tensor ids = texts(c, device);
      // Dynamic NTK turns by the length of the text: the full pass at each length.
      const bool by_length = c.rope_scaling == RopeScale::dynamic_ntk;
      const Tensor whole = model->logits(ids);
      nn::KVCache cache = model->make_cache(2, 10);
      for (int64_t at = 0; at < 10;) {
        const int64_t count = at == 0 ? 3 : 1;
        const Tensor next = model->next_logits(copy(ids.narrow(1, at, count)), cache);
        at += count;
        if (by_length && at != 3) continue;
        const Tensor full = by_length ? model->logits(copy(ids.narrow(1, 0, at))) : whole;
        CHECK(largest_difference(next, copy(full.narrow(1, at - 1, 1)).reshape(next.shape())) <=
              1e-12);
      }
      ReportOptions o;
      o.batch = 2, o.seq = 9, o.decode = true, o.dtype = DType::f64;
      CHECK(make_report(c, o).kv_cache == double(cache.nbytes()));
    }
  }
}

TEST_CASE_METHOD(Setup, "L96: DeepSeek-V2's cache takes 576 numbers a layer and token", "[claim]") {
  RunConfig c = find_preset("deepseek-v2").config;
  c.resolve_and_check("deepseek-v2");
  ReportOptions o;
  o.batch = 1, o.seq = 4095, o.decode = true, o.dtype = DType::bf16;
  const Report r = make_report(c.model, o);
  CHECK(r.kv_cache_per_token == 60.0 * 576 * 2);
  CHECK(r.kv_cache == 60.0 * 576 * 2 * 4096);
  // Heads of their own would take 2 x 128 heads x 128: 57 times as much.
  ModelConfig heads = c.model;
  heads.attention = AttentionKind::heads, heads.head_dim = 128;
  const double plain = cache_size(heads, 1, 0).numbers_per_token;
  CHECK(plain / cache_size(c.model, 1, 0).numbers_per_token == Approx(32768.0 / 576));
}

TEST_CASE_METHOD(Setup, "latent model: every formula of the algebra equals the count",
                 "[account]") {
  for (int64_t rank : {0, 5}) {
    ModelConfig c = small_latent(rank);
    c.attention_sink = rank == 5;
    check_algebra(checked(c), 9);
  }
}

TEST_CASE_METHOD(Setup, "latent model: learns a batch by heart, on the reference and the cpu alike",
                 "[model]") {
  ModelConfig c = checked(small_latent());
  c.attention_dropout = c.residual_dropout = 0.05;
  check_learns_a_batch(c);
}

TEST_CASE_METHOD(Setup, "latent model: a step on meta has the ledger of a real one", "[model]") {
  check_ledger_on_meta(checked(small_latent()));
}

TEST_CASE_METHOD(Setup, "latent model: layers that are computed again have the same gradients",
                 "[model]") {
  ModelConfig c = checked(small_latent());
  c.attention_dropout = 0.2;
  Numbers gradients[2];
  for (const bool again : {false, true}) {
    const auto model = made(c, kCPU);
    model->recompute = {again, again};
    Generator dropout(4);
    Tape tape;
    tape.backward(model->loss(ids_of(c, 8, 1, kCPU), ids_of(c, 8, 2, kCPU), 0, &dropout));
    for (const auto& [name, p] : model->named_parameters()) {
      const Numbers g = numbers(p.grad());
      gradients[again].insert(gradients[again].end(), g.begin(), g.end());
    }
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE_METHOD(Setup, "latent model: every parameter passes tally gradcheck", "[model]") {
  for (int64_t rank : {0, 5}) {
    ModelConfig c = small_latent(rank);
    if (rank == 5) c.attention_sink = true, c.document_end = 7;
    check_differences(checked(c));
  }
}

TEST_CASE_METHOD(Setup, "latent model: YaRN's mscale_all_dim multiplies the scores by its square",
                 "[model][L52]") {
  ModelConfig c = small_latent();
  c.rope_scaling = RopeScale::yarn, c.rope_factor = 4, c.rope_original_context = 5;
  c.rope_mscale = c.rope_mscale_all_dim = 0.8;
  const double m = 0.08 * std::log(4.0) + 1;
  CHECK(latent_options(checked(c))->scale == Approx(m * m / std::sqrt(6.0)).epsilon(1e-14));
  c.attention_scale = 2;
  CHECK(latent_options(checked(c))->scale == Approx(2 * m * m).epsilon(1e-14));
  c = small_latent();
  c.attention_scale = 2, c.position = Position::none, c.rope_layout = RopeLayout::half;
  CHECK(latent_options(checked(c))->scale == 2);
}

TEST_CASE("latent model: its heads are not converted", "[model][error]") {
  const ModelConfig c = checked(small_latent());
  CHECK_THROWS_WITH(with_kv_heads(c, 1), Contains("only the heads of attention = heads"));
  CHECK_THROWS_WITH(with_rope_layout(c, RopeLayout::half), Contains("only heads of attention"));
}

TEST_CASE("latent model: what does not fit is refused by name", "[config][error]") {
  CHECK(refusal({"model.layers=3"}) == "accepted");
  CHECK_THAT(refusal({"model.attention=heads"}),
             Contains("q_lora_rank needs attention = latent; leave it out"));
  CHECK_THAT(refusal({"model.attention=head"}), Contains("did you mean \"heads\"?"));
  for (const char* field : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
    CHECK_THAT(refusal({(std::string("model.") + field + "=0").c_str()}),
               Contains(std::string(field) + " must be 1 or more for attention = latent"));
  CHECK_THAT(refusal({"model.qk_rope_head_dim=3"}),
             Contains("must be even") && Contains("make it 4"));
  CHECK_THAT(refusal({"model.head_dim=8"}),
             Contains("must be qk_nope_head_dim + qk_rope_head_dim = 6"));
  for (const char* assignment :
       {"model.kv_heads=1", "model.qkv_bias=true", "model.attention_output_bias=true",
        "model.qkv_clip=2", "model.attention_gate=true", "model.rope_fraction=0.5"}) {
    const std::string field(std::string_view(assignment).substr(6));
    CHECK_THAT(refusal({assignment}),
               Contains(field.substr(0, field.find('=')) +
                        " has no meaning for attention = latent; set it to"));
  }
  CHECK_THAT(refusal({"model.scalar_biases=true", "model.residual_gain=scalar"}),
             Contains("scalar_biases has no meaning for attention = latent"));
  for (const char* kind : {"head", "full", "heads"})
    CHECK_THAT(refusal({(std::string("model.qk_norm=") + kind).c_str()}),
               Contains("qk_norm needs keys of each head, which decoding from a latent never"));
  CHECK_THAT(refusal({"model.attention_sink=true", "model.softmax_off_by_one=true"}),
             Contains("choose one"));
  CHECK_THAT(refusal({"model.position=alibi"}), Contains("rope or t5_bias; got alibi"));
  CHECK_THAT(refusal({"model.architecture=encoder", "model.position=none", "model.tied_head=true",
                      "model.head_bias=true"}),
             Contains("attention has no meaning for architecture = encoder"));
}
