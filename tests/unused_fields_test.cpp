// Fields that the others leave without meaning: refused, since a learner who sets one expects it to
// do something.
#include <catch2/catch.hpp>

#include "tests/block_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

struct Case {
  const char* field;   // with a value that is not the default
  Assignments needed;  // what gives it a meaning
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"sinusoid_layout=halves", {"position=sinusoidal"}},
      {"alibi_scale=0.5", {"position=alibi"}},
      {"t5_buckets=16", {"position=t5_bias"}},
      {"t5_max_distance=64", {"position=t5_bias"}},
      {"rope_original_context=8", {"rope_scaling=dynamic_ntk", "rope_factor=2"}},
      {"rope_low_frequency=2", {"rope_scaling=llama3", "rope_factor=2", "rope_original_context=8"}},
      {"rope_beta_fast=16", {"rope_scaling=yarn", "rope_factor=2", "rope_original_context=8"}},
      {"rope_mscale=0.7", {"rope_scaling=yarn", "rope_factor=2", "rope_original_context=8"}},
      {"rope_truncate=false", {"rope_scaling=yarn", "rope_factor=2", "rope_original_context=8"}},
      {"rope_attention_factor=1.5",
       {"rope_scaling=yarn", "rope_factor=2", "rope_original_context=8"}},
      {"router=sigmoid", {"experts=4"}},
      {"router_scale=2", {"experts=4"}},
      {"router_renormalise=false", {"experts=4"}},
      {"first_expert_layer=1", {"experts=4"}},
      {"expert_layer_every=2", {"experts=4"}},
      {"shared_expert_gate=true", {"experts=4", "shared_experts=1"}},
      {"dense_branch=true", {"experts=4", "placement=double"}},
      {"router_norm=true", {"experts=4"}},
      {"router_expert_scale=true", {"experts=4"}},
  };
  return list;
}

}  // namespace

TEST_CASE("config: a field without meaning is refused, and accepted where it has one",
          "[config][error]") {
  for (const Case& c : cases()) {
    INFO(c.field);
    const std::string name = std::string(c.field).substr(0, std::string(c.field).find('='));
    CHECK_THAT(refusal({c.field}), Contains(name + " has no meaning without "));
    Assignments both = c.needed;
    both.emplace_back(c.field);
    CHECK(refusal(both) == "accepted");
  }
  for (const char* field : {"rope_base=500", "rope_fraction=0.5", "rope_layout=interleaved"}) {
    CHECK_THAT(refusal({"position=learned", field}), Contains("without position = rope"));
    CHECK(refusal({field}) == "accepted");
  }
}

TEST_CASE("config: a dense branch beside experts needs norms on both sides", "[config][error]") {
  const char* const both[] = {"experts=4", "dense_branch=true"};
  CHECK_THAT(refusal({both[0], both[1]}), Contains("dense_branch = true has norms on both sides"));
  CHECK_THAT(refusal({both[0], both[1], "placement=double", "parallel=two_norms"}),
             Contains("set placement to double and parallel to none"));
}

TEST_CASE("config: buckets and scales that no layer could use are refused", "[config][error]") {
  CHECK_THAT(refusal({"position=t5_bias", "t5_buckets=3", "architecture=encoder_decoder"}),
             Contains("above the 0 distances with a bucket of their own, a quarter"));
  CHECK(refusal({"position=t5_bias", "t5_buckets=3"}) == "accepted");
  CHECK_THAT(refusal({"position=t5_bias", "position_pattern=none"}), Contains("leaves no layer"));
  CHECK_THAT(refusal({"residual_scales=1,1e300"}), Contains("from -1e6 to 1e6"));
}
