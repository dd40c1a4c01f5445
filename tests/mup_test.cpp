// muP: activations and steps that do not depend on the width (lecture claim L85).
#include <catch2/catch.hpp>

#include "models/build.h"
#include "models/coordinates.h"
#include "models/mup.h"
#include "models/target.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

RunConfig config_of(const std::vector<std::string>& set) {
  register_all();
  return resolve_target("llama-smoke", set).config;
}

double largest_exponent(const std::vector<Coordinate>& rows) {
  double most = 0;
  for (const Coordinate& r : rows) most = std::max(most, std::abs(r.exponent));
  return most;
}

double deviation(const Tensor& t) {
  double squares = 0;
  for (const float x : to_host<float>(t)) squares += double(x) * double(x);
  return std::sqrt(squares / double(t.numel()));
}

Tensor parameter(nn::Decoder& model, const std::string& name) {
  for (auto& [n, t] : model.named_parameters())
    if (n == name) return t;
  FAIL("no parameter " << name);
  return {};
}

}  // namespace

TEST_CASE("muP: a step moves every activation alike at every width; without it they grow",
          "[training][L85]") {
  const std::vector<int64_t> widths{64, 128, 256};
  const auto with = coordinate_check(config_of({"model.mup_base_width=64", "train.batch=2"}),
                                     widths, 3),
             without = coordinate_check(config_of({"train.batch=2"}), widths, 3);
  REQUIRE(with.size() == without.size());
  REQUIRE(with.size() >= 8);
  CHECK(largest_exponent(with) < 0.5);  // the logits shrink as width^(-1/2) while nothing is learnt
  CHECK(largest_exponent(without) > 1);
}

TEST_CASE("muP: hidden matrices begin narrower and step shorter, logits are divided",
          "[training][L85]") {
  const RunConfig wide = at_width(config_of({"model.mup_base_width=64"}), 256);
  CHECK(mup_width(wide.model) == 4);
  const auto model = build_model(wide.model, DType::f32, kCPU);
  initialise(*model, wide.model, 1);
  const double std = wide.model.init_std;
  for (const char* hidden : {"blocks.0.attention.qkv.weight", "blocks.1.mlp.down.weight"})
    CHECK(deviation(parameter(*model, hidden)) == Approx(std / 2).epsilon(0.03));
  CHECK(deviation(parameter(*model, "embedding.weight")) == Approx(std).epsilon(0.03));

  ModelConfig plain = wide.model;
  plain.mup_base_width = 0;
  const auto other = build_model(plain, DType::f32, kCPU);
  initialise(*other, wide.model, 1);  // the same weights
  const Tensor ids = from_host<int64_t>({1, 2, 3, 4}, {1, 4}, kCPU);
  const auto small = to_host<float>(model->logits(ids)), large = to_host<float>(other->logits(ids));
  for (size_t i = 0; i < small.size(); ++i) CHECK(4 * small[i] == Approx(large[i]).epsilon(1e-5));

  const auto optimizer = optim::make_optimizer(*model, optimizer_of(wide.train, wide.model));
  const auto& groups = optimizer->groups();
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "hidden matrices");
  CHECK(groups[0].lr_scale == 0.25);
  CHECK(groups[0].weight_decay == 4 * wide.train.weight_decay);
  CHECK(groups[1].lr_scale == 1);
  CHECK(groups[1].weight_decay == wide.train.weight_decay);
}

TEST_CASE("muP: at the base width nothing changes; heads of another size change the scores",
          "[training][L85]") {
  RunConfig c = tiny();
  Made plain(c, 50);
  c.model.mup_base_width = c.model.d_model;
  c.model.mup_base_head_dim = c.model.head_dim;
  Made base(c, 50);
  CHECK(losses(*plain.trainer, 5) == losses(*base.trainer, 5));
  c.model.mup_base_head_dim = 4 * c.model.head_dim;
  CHECK(mup_attention_scale(c.model) == Approx(2 / std::sqrt(double(c.model.head_dim))));
}

TEST_CASE("muP: what it does not cover is refused by name", "[config][error]") {
  register_all();
  const auto refused = [](const std::vector<std::string>& set, const char* what) {
    std::vector<std::string> all = set;
    CHECK_THROWS_WITH(resolve_target("llama-smoke", all), Contains(what));
  };
  refused({"model.mup_base_width=64", "train.optimizer=muon"}, "steps have a length of their own");
  refused({"model.mup_base_width=64", "model.init=xavier"}, "set init to normal");
  refused({"model.mup_base_head_dim=16"}, "no meaning without mup_base_width");
  refused({"model.mup_base_width=64", "model.mup_base_head_dim=16", "model.attention_scale=1"},
          "leave one out");
  refused({"model.mup_base_width=64", "model.experts=4"}, "decoders of plain blocks");
  CHECK_THROWS_WITH(at_width(config_of({}), 100), Contains("are no whole number at d_model = 100"));
}

TEST_CASE("coordinates: a model that has diverged has no size, and no exponent", "[mup]") {
  const auto rows =
      coordinate_check(config_of({"train.batch=1", "train.lr=1000", "train.clip=0"}), {64, 128}, 3);
  for (const Coordinate& row : rows) {
    INFO(row.name);
    for (const double v : row.values) CHECK(std::isnan(v));
    CHECK(std::isnan(row.exponent));
  }
}
