// Position schemes of whole models: fields, tables, decoding, cost.
#include <catch2/catch.hpp>

#include "autograd/proof/run_sample.h"
#include "core/ledger.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/config_positions.h"
#include "models/parameters.h"
#include "models/report.h"
#include "tests/data_helpers.h"
#include "tests/registered.h"
#include "tests/worse.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Scheme {
  const char* name;
  std::function<void(ModelConfig&)> set;
};

constexpr auto rope = Position::rope;
void scaled(ModelConfig& c, RopeScale scaling, double factor, int64_t original) {
  c.rope_scaling = scaling, c.rope_factor = factor, c.rope_original_context = original;
}
// Every scheme, each with something that could go wrong.
const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> list = {
      {"none", [](ModelConfig& c) { c.position = Position::none; }},
      {"learned, two rows in front",
       [](ModelConfig& c) { c.position = Position::learned, c.position_offset = 2; }},
      {"sinusoidal", [](ModelConfig& c) { c.position = Position::sinusoidal; }},
      {"sinusoidal in halves",
       [](ModelConfig& c) {
         c.position = Position::sinusoidal, c.sinusoid_layout = SinusoidLayout::halves;
       }},
      {"alibi of three heads",
       [](ModelConfig& c) {
         c.position = Position::alibi, c.heads = 3, c.kv_heads = 1, c.head_dim = 8;
       }},
      {"alibi and a layer without",
       [](ModelConfig& c) {
         c.position = Position::alibi, c.position_pattern = {"global", "none"};
       }},
      {"t5_bias",
       [](ModelConfig& c) {
         c.position = Position::t5_bias, c.t5_buckets = 8, c.t5_max_distance = 10;
       }},
      {"t5_bias and a layer without",
       [](ModelConfig& c) {
         c.position = Position::t5_bias, c.position_pattern = {"none", "global"};
       }},
      {"xl_relative", [](ModelConfig& c) { c.position = Position::xl_relative; }},
      {"xl_relative, separate matrices, grouped heads",
       [](ModelConfig& c) {
         c.position = Position::xl_relative, c.fused_qkv = false, c.kv_heads = 1;
       }},
      {"rope", [](ModelConfig& c) { c.position = rope; }},
      {"rope on half of a head, interleaved",
       [](ModelConfig& c) { c.rope_fraction = 0.5, c.rope_layout = RopeLayout::interleaved; }},
      {"rope with local layers and one without",
       [](ModelConfig& c) {
         c.layers = 3, c.position_pattern = {"local", "none", "global"};
         c.rope_base = 1e6, c.rope_local_base = 1e4;
         scaled(c, RopeScale::linear, 8, 0);
       }},
      {"rope, ntk", [](ModelConfig& c) { scaled(c, RopeScale::ntk, 4, 0); }},
      {"rope, yarn", [](ModelConfig& c) { scaled(c, RopeScale::yarn, 4, 8); }},
      {"rope, llama3", [](ModelConfig& c) { scaled(c, RopeScale::llama3, 4, 8); }},
      {"rope, dynamic_ntk within its context",
       [](ModelConfig& c) { scaled(c, RopeScale::dynamic_ntk, 2, 64); }},
      {"rope, longrope across its switch",
       [](ModelConfig& c) {
         scaled(c, RopeScale::longrope, 8, 9);
         c.rope_short_factors = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
         c.rope_long_factors = {1, 2, 3, 4, 5, 6, 7, 8};
       }},
      {"rope, proportional",
       [](ModelConfig& c) { c.rope_scaling = RopeScale::proportional, c.rope_fraction = 0.25; }},
      {"rope with angles in single precision", [](ModelConfig& c) { c.rope_float32 = true; }},
  };
  return list;
}

ModelConfig config_of(const Scheme& s) {
  ModelConfig c;
  c.layers = 2, c.d_model = 32, c.heads = 2, c.vocab = 19, c.context = 64, c.init = Init::xavier;
  s.set(c);
  c.resolve();
  c.check();
  return c;
}
std::unique_ptr<nn::Decoder> made(const ModelConfig& c, Device device = kCPU,
                                  DType dtype = DType::f32) {
  auto m = build_model(c, dtype, device);
  initialise(*m, c, 1);
  return m;
}
Tensor random_ids(int64_t b, int64_t t, Device device = kCPU) {
  std::vector<int64_t> ids(static_cast<size_t>(b * t));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(Philox::word(3, 1, i) % 19);
  return from_host<int64_t>(ids, {b, t}, device);
}
Tensor columns(const Tensor& ids, int64_t first, int64_t count) {
  std::vector<int64_t> part;
  const auto all = to_host<int64_t>(ids);
  for (int64_t b = 0; b < ids.size(0); ++b) {
    for (int64_t t = first; t < first + count; ++t)
      part.push_back(all[static_cast<size_t>(b * ids.size(1) + t)]);
  }
  return from_host<int64_t>(part, {ids.size(0), count}, ids.device());
}
std::string error_of(const std::function<void(ModelConfig&)>& set) {
  try {
    config_of({"", set});
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

// Largest difference of the last logits of a full pass over `count` tokens, relative.
double off_by(nn::Decoder& model, const Tensor& ids, int64_t count, const Tensor& cached) {
  const auto full = to_doubles(model.logits(columns(ids, 0, count))), got = to_doubles(cached);
  double worst = 0, largest = 0;
  const size_t v = 19, t = static_cast<size_t>(count);
  for (size_t b = 0; b < 2; ++b) {
    for (size_t i = 0; i < v; ++i) {
      const double want = full[(b * t + t - 1) * v + i];
      worst = test::worse(worst, got[b * v + i], want);
      largest = std::max(largest, std::fabs(want));
    }
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("position: decoding with the cache equals the full pass at every position, each scheme",
          "[model][F22][F26]") {
  for (const Scheme& scheme : schemes()) {
    INFO(scheme.name);
    const auto model = made(config_of(scheme));
    const Tensor ids = random_ids(2, 14);
    nn::KVCache cache = model->make_cache(2, 14);
    CHECK(off_by(*model, ids, 5, model->next_logits(columns(ids, 0, 5), cache)) <= 1e-5);
    for (int64_t at = 5; at < 13; ++at) {
      INFO("position " << at);
      const Tensor next = model->next_logits(columns(ids, at, 1), cache);
      CHECK(off_by(*model, ids, at + 1, next) <= 1e-5);
      CHECK(cache.length() == at + 1);
    }
  }
}

TEST_CASE("position: under dynamic NTK a cache keeps keys as they were turned", "[model][L52]") {
  const ModelConfig c =
      config_of({"", [](ModelConfig& m) { scaled(m, RopeScale::dynamic_ntk, 4, 6); }});
  const auto model = made(c);
  const Tensor ids = random_ids(2, 12);
  nn::KVCache cache = model->make_cache(2, 12);
  CHECK(off_by(*model, ids, 6, model->next_logits(columns(ids, 0, 6), cache)) <= 1e-5);
  Tensor next;
  for (int64_t at = 6; at < 12; ++at) next = model->next_logits(columns(ids, at, 1), cache);
  CHECK(off_by(*model, ids, 12, next) > 1e-4);
}

TEST_CASE("position: every scheme has the parameters that its fields say, and a gradient",
          "[model]") {
  for (const Scheme& scheme : schemes()) {
    INFO(scheme.name);
    const ModelConfig c = config_of(scheme);
    const auto model = made(c);
    const auto specs = parameter_specs(c);
    const auto parameters = model->named_parameters();
    REQUIRE(parameters.size() == specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      CHECK(parameters[i].first == specs[i].name);
      CHECK(parameters[i].second.shape() == Shape(std::span<const int64_t>(specs[i].shape)));
    }
    CHECK(model->parameter_count() == parameter_count(c));
    // With and without recomputation: the same bits.
    const Tensor ids = random_ids(2, 11);
    std::vector<std::vector<double>> gradients[2];
    for (int again = 0; again < 2; ++again) {
      model->recompute.assign(static_cast<size_t>(c.layers), again == 1);
      model->requires_grad();
      model->zero_grad();
      Tape tape;
      tape.backward(model->loss(ids, ids));
      for (const auto& [name, value] : model->named_parameters()) {
        INFO(name);
        REQUIRE(value.grad().defined());
        gradients[again].push_back(to_doubles(value.grad()));
        double largest = 0;
        for (double g : gradients[again].back()) largest = std::max(largest, std::fabs(g));
        CHECK(std::isfinite(largest));
        CHECK(largest > 0);
      }
    }
    CHECK(gradients[0] == gradients[1]);
  }
}

TEST_CASE("position: what meta accounts for is what a run costs, for every scheme", "[model]") {
  for (const Scheme& scheme : schemes()) {
    INFO(scheme.name);
    const ModelConfig c = config_of(scheme);
    const auto total = [&](Device device) {
      const auto model = made(c, device);
      model->requires_grad();
      const Tensor ids = backend(device).is_meta() ? empty({2, 11}, DType::i64, device)
                                                   : random_ids(2, 11, device);
      Ledger ledger;
      Tape tape;
      tape.backward(model->loss(ids, ids, 22));
      Cost cost;
      for (const Entry& e : ledger.entries()) cost += e.cost;
      return cost;
    };
    CHECK(total(kMeta) == total(kReference));
    ReportOptions decode;
    decode.decode = true, decode.seq = 12;
    CHECK(make_report(c, decode).cost.flops > 0);
  }
}

TEST_CASE("position: fields that do not fit are refused with what would", "[config][error]") {
  CHECK_THAT(error_of([](ModelConfig& c) { c.position_pattern = {"globl"}; }),
             Contains("\"globl\" is not known; did you mean \"global\"?"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               c.position = Position::alibi, c.position_pattern = {"local"};
             }),
             Contains("they need position = rope"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               c.position = Position::learned, c.position_pattern = {"global", "none"};
             }),
             Contains("for positions that every layer has"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.position_offset = 2; }),
             Contains("position_offset = 2 needs position = learned"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.rope_factor = 8; }),
             Contains("rope_factor = 8 needs position = rope and a rope_scaling"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               c.position = Position::alibi, c.rope_scaling = RopeScale::yarn;
             }),
             Contains("rope_scaling = yarn needs position = rope"));
  CHECK_THAT(error_of([](ModelConfig& c) { scaled(c, RopeScale::llama3, 8, 0); }),
             Contains("rope_scaling = llama3 needs rope_original_context"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.rope_fraction = 0.2; }),
             Contains("makes 3 coordinates turn; that must be an even number from 2"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               scaled(c, RopeScale::longrope, 8, 9);
               c.rope_short_factors = std::vector<double>(8, 1), c.rope_long_factors = {1, 2};
             }),
             Contains("each of the 8 pairs in rope_long_factors; it has 2"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.rope_long_factors = {1}; }),
             Contains("need rope_scaling = longrope"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               scaled(c, RopeScale::yarn, 8, 9);
               c.rope_beta_slow = 64;
             }),
             Contains("beta_fast > beta_slow"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               c.position = Position::sinusoidal, c.heads = 1, c.d_model = 33;
             }),
             Contains("d_model = 33 must be even for sinusoidal"));
  CHECK_THAT(
      error_of([](ModelConfig& c) { c.position = Position::t5_bias, c.t5_max_distance = 16; }),
      Contains("t5_max_distance = 16 must be above the 16 distances"));
  RunConfig run;
  CHECK_THROWS_WITH(apply_override(run, "model.rope_scaling=yarm"),
                    Contains("did you mean \"yarn\"?"));
}

TEST_CASE("position: lists are read from a document and from --set", "[config]") {
  RunConfig run;
  apply_override(run, "model.rope_long_factors=1,2.5,4");
  apply_override(run, "model.position_pattern=local,local,global");
  CHECK(run.model.rope_long_factors == std::vector<double>{1, 2.5, 4});
  CHECK(run.model.position_pattern == std::vector<std::string>{"local", "local", "global"});
  const RunConfig again = run_config_from_json(to_json_text(run), "document");
  CHECK(again == run);
  CHECK_THROWS_WITH(apply_override(run, "model.rope_long_factors=1,x"),
                    Contains("must be a list of numbers"));
}
