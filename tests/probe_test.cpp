// Probes: what they measure, that they change nothing, and how they are named.
#include <catch2/catch.hpp>
#include <cmath>

#include "cli/probe_view.h"
#include "core/ops/all.h"
#include "models/config_json.h"
#include "models/probe_measures.h"
#include "models/probes.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::cli;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> all_probes() { return {probe_names().begin(), probe_names().end()}; }

struct Probed {
  StepResult step;
  ProbeValues values;
};
Probed probed_step(Trainer& t, const std::vector<std::string>& names) {
  Probes probes(names, t.optimizer().groups());
  t.measure_noise(true);
  const StepResult r = t.step();
  probes.noise(r.noise);
  probes.moments(t.optimizer().state());
  return {r, probes.values()};
}
double value(const ProbeValues& v, const std::string& probe, const std::string& place) {
  for (const auto& [name, x] : v.at(probe))
    if (name == place) return x;
  FAIL("no " << place << " of " << probe);
  return NAN;
}
double rms(std::span<const float> x) {
  double s = 0;
  for (float v : x) s += static_cast<double>(v) * v;
  return std::sqrt(s / static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("probes: the weights of a training have the same bits with all of them on", "[probes]") {
  for (int64_t accumulation : {1, 3}) {
    RunConfig config = small(accumulation);
    config.model.experts = 3, config.model.experts_per_token = 2;  // router_load has what to show
    config.resolve_and_check("small");
    Made plain(config), watched(config);
    for (int i = 0; i < 5; ++i) {
      const StepResult a = plain.trainer->step();
      const Probed b = probed_step(*watched.trainer, all_probes());
      CHECK(a.loss == b.step.loss);
      CHECK(a.grad_norm == b.step.grad_norm);
      CHECK(b.values.size() == probe_names().size());
      for (const auto& [probe, places] : b.values) {
        INFO(probe);
        const bool nothing = (probe == "noise_scale" && accumulation == 1) ||
                             (probe == "update_rank" && b.step.lr == 0);  // an update of zeros
        CHECK(places.empty() == nothing);
        for (const auto& [place, x] : places) CHECK(std::isfinite(x));
      }
    }
    CHECK(weights(*plain.trainer) == weights(*watched.trainer));
  }
}

TEST_CASE("probes: gradient norms by parameter add up to the global norm, log Z is the step's",
          "[probes]") {
  Made m(small());
  const Probed p = probed_step(*m.trainer, {"grad_norm", "log_z"});
  double squares = 0;
  for (const auto& [name, norm] : p.values.at("grad_norm")) squares += norm * norm;
  CHECK(std::sqrt(squares) == Approx(p.step.grad_norm).epsilon(1e-6));
  CHECK(p.values.at("grad_norm").size() == m.trainer->model().named_parameters().size());
  CHECK(value(p.values, "log_z", "mean") == Approx(p.step.log_z).epsilon(1e-6));
  CHECK(value(p.values, "log_z", "rms") >= std::abs(p.step.log_z) * (1 - 1e-6));
}

TEST_CASE("probes: the update ratio is what the weights moved by", "[probes]") {
  Made m(small());
  losses(*m.trainer, 3);
  const auto before = weights(*m.trainer);
  const Probed p = probed_step(*m.trainer, {"update_ratio"});
  const auto after = weights(*m.trainer);
  size_t i = 0;
  for (auto& [name, w] : m.trainer->model().named_parameters()) {
    INFO(name);
    std::vector<float> change(before[i].size());
    for (size_t k = 0; k < change.size(); ++k) change[k] = after[i][k] - before[i][k];
    CHECK(value(p.values, "update_ratio", name) ==
          Approx(rms(change) / rms(before[i])).epsilon(1e-4));
    ++i;
  }
}

TEST_CASE("probes: residual and sub-layer sizes follow the weights", "[probes]") {
  RunConfig c = small();
  c.model.layers = 2;
  c.model.residual_dropout = c.model.attention_dropout = 0;
  c.resolve_and_check("two layers");
  Made m(c);
  const auto scale = [&](const std::string& parameter, float factor) {
    for (auto& [name, w] : m.trainer->model().named_parameters())
      if (name == parameter)
        for (float& v : w.host<float>()) v *= factor;
  };
  for (const char* w : {"blocks.0.attention.out.weight", "blocks.0.mlp.down.weight",
                        "blocks.1.attention.out.weight"})
    scale(w, 0);
  scale("blocks.1.mlp.down.weight", 100);  // the lecture's test of L15
  const Probed p = probed_step(*m.trainer, {"residual_rms", "sublayer_rms"});
  const double embedding = value(p.values, "residual_rms", "embedding"),
               branch = value(p.values, "sublayer_rms", "blocks[1].mlp");
  CHECK(embedding > 0);
  CHECK(value(p.values, "residual_rms", "blocks[0]") == embedding);
  CHECK(value(p.values, "sublayer_rms", "blocks[0].attention") == 0);
  CHECK(value(p.values, "sublayer_rms", "blocks[0].mlp") == 0);
  CHECK(branch > embedding);
  CHECK(value(p.values, "residual_rms", "blocks[1]") ==
        Approx(std::hypot(embedding, branch)).epsilon(0.2));
}

TEST_CASE("probes: the share of directions of known matrices", "[probes]") {
  register_all();
  const auto share = [](std::vector<double> values, Shape shape) {
    return rank_share(from_host<double>(values, shape, kCPU));
  };
  CHECK(share({0, 2, 0, -2, 0, 0, 0, 0, 2}, {3, 3}) == Approx(1));  // orthogonal but for its size
  CHECK(share({1, 2, 3, 2, 4, 6}, {2, 3}) == Approx(0.5));          // rank one of two
  CHECK(share({1, 2, 2, 4, 3, 6}, {3, 2}) == Approx(0.5));
  CHECK(share({3, 0, 0, 4}, {2, 2}) == Approx(625.0 / 337 / 2));  // 25^2 / (3^4 + 4^4)
  CHECK(std::isnan(share({0, 0, 0, 0}, {2, 2})));
  CHECK(std::isnan(share({1, 2}, {2})));
  const std::vector<double> old = {1, 1, 1, 1};
  const Tensor now = from_host<double>({4, 1, 1, 5}, {2, 2}, kCPU);  // 3 and 4 on the diagonal more
  CHECK(rank_share(now, reinterpret_cast<const std::byte*>(old.data())) == Approx(625.0 / 337 / 2));
}

// Lecture claim L87: few directions rule the momentum; orthogonalising evens them out.
TEST_CASE("probes: Muon's update goes in more directions than its momentum", "[probes][L87]") {
  RunConfig c = small();
  c.train.optimizer = optim::OptimizerKind::muon;
  c.resolve_and_check("muon");
  Made m(c);
  losses(*m.trainer, 10);
  const Probed p = probed_step(*m.trainer, {"update_rank", "momentum_rank"});
  int matrices = 0;
  for (auto& [name, w] : m.trainer->model().named_parameters()) {
    if (!name.starts_with("blocks.") || w.ndim() != 2) continue;
    INFO(name);
    CHECK(value(p.values, "update_rank", name) > 3 * value(p.values, "momentum_rank", name));
    ++matrices;
  }
  CHECK(matrices == 4);
}

TEST_CASE("probes: attention with equal keys has the entropy of a uniform row, and one key has 0",
          "[probes]") {
  register_all();
  const int64_t t = 8;
  const auto measure = [&](float size, bool first_differs) {
    Tensor q = full({1, t, 2, 4}, 1, DType::f32, kCPU), k = full({1, t, 2, 4}, 0, DType::f32, kCPU);
    if (first_differs)
      for (int64_t i = 0; i < 8; ++i) k.host<float>()[static_cast<size_t>(i)] = size;
    struct Catcher : Watcher {
      void after(const WatchedCall& call, const Entry&) override {
        if (const auto* a = call.as<ops::AttentionForward>()) m = measure_attention(*a);
      }
      AttentionMeasure m;
    } catcher;
    ops::Attention::forward(q, k, q, {}, {}, {}, {}, {}, nullptr);
    return catcher.m;
  };
  const AttentionMeasure uniform = measure(0, false);
  CHECK(uniform.rows == 2 * t);
  double want = 0;
  for (int64_t n = 1; n <= t; ++n) want += 2 * std::log(static_cast<double>(n));
  CHECK(uniform.entropy == Approx(want).epsilon(1e-6));
  CHECK(uniform.max_logit == 0);
  CHECK(uniform.saturated == 2);                     // the first query of each head sees one key
  const AttentionMeasure sharp = measure(20, true);  // score 20 * 4 / sqrt(4)
  CHECK(sharp.max_logit == Approx(40));
  CHECK(sharp.entropy == Approx(0).margin(1e-6));
  CHECK(sharp.saturated == 2 * t);
}

TEST_CASE("probes: the entropy of a sample is near that of all rows", "[probes]") {
  Made m(small());
  RunConfig c = small();
  const Probed p = probed_step(*m.trainer, {"attention_entropy", "max_logit"});
  const double entropy = value(p.values, "attention_entropy", "blocks[0]");
  double uniform = 0;  // weights of a fresh model are nearly uniform over what a query sees
  for (int n = 1; n <= 32; ++n) uniform += std::log(n) / 32;
  CHECK(entropy == Approx(uniform).epsilon(0.05));
}

TEST_CASE("probes: router_load is the busiest expert's share, counted by hand", "[probes]") {
  const int64_t accumulation = GENERATE(1, 2);
  RunConfig c = small(accumulation);
  c.model.layers = 3, c.model.experts = 5, c.model.experts_per_token = 2;
  c.model.first_expert_layer = 1;
  c.resolve_and_check("routed");
  struct Chosen : Watcher {
    void after(const WatchedCall& call, const Entry& entry) override {
      const auto* g = call.as<ops::ExpertGather::Forward>();  // behind the router: what it is told
      if (!g || entry.phase != Phase::forward) return;
      std::vector<int64_t> counts(5, 0);
      for (int64_t i = 0; i < g->experts.numel(); ++i)
        ++counts[static_cast<size_t>(g->experts.pointer<int64_t>()[i])];
      int64_t all = 0, most = 0;
      for (const int64_t n : counts) all += n, most = std::max(most, n);
      CHECK(all == 4 * 32 * 2);
      // An even load is a fifth of all choices: this is how many of those the busiest one got.
      sums[std::string(entry.module)] += static_cast<double>(most) / (static_cast<double>(all) / 5);
    }
    std::map<std::string, double> sums;
  };
  Made by_hand(c), probed(c);
  std::map<std::string, double> sums;
  {
    Chosen chosen;
    by_hand.trainer->step();
    sums = chosen.sums;
  }
  REQUIRE(sums.size() == 2);
  const Probed p = probed_step(*probed.trainer, {"router_load"});
  REQUIRE(p.values.at("router_load").size() == 2);
  for (const auto& [module, sum] : sums) {
    const std::string block = module.substr(0, module.find(".mlp"));
    CHECK(value(p.values, "router_load", block) ==
          Approx(sum / static_cast<double>(accumulation)).epsilon(1e-12));
    CHECK(sum >= static_cast<double>(accumulation));  // 1 where all are equally busy
  }
}

TEST_CASE("probes: names are checked, and a configuration keeps them", "[probes][error]") {
  RunConfig c = small();
  c.train.probes = {"residual_rms", "grad_norms"};
  CHECK_THROWS_WITH(c.resolve_and_check("c"),
                    Contains("\"grad_norms\" is not known; did you mean \"grad_norm\"?"));
  c = small();
  apply_override(c, "train.probes=log_z,max_logit");
  CHECK(c.train.probes == std::vector<std::string>{"log_z", "max_logit"});
  CHECK(run_config_from_json(to_json_text(c), "c").train.probes == c.train.probes);
  apply_override(c, "train.probes=[\"grad_norm\"]");
  CHECK(c.train.probes == std::vector<std::string>{"grad_norm"});
  apply_override(c, "train.probes=");
  CHECK(c.train.probes.empty());
  CHECK_THROWS_WITH(apply_override(c, "train.probes=[3]"), Contains("must be a list of texts"));
}

TEST_CASE("probes: metrics hold an object for each, and the report draws a line for each layer",
          "[probes][report]") {
  Made m(small());
  const Json json = probes_json(probed_step(*m.trainer, all_probes()).values);
  CHECK(json.size() == probe_names().size());
  CHECK(json["residual_rms"].contains("embedding"));
  CHECK(probes_json({{"p", {{"a", NAN}}}}) == Json{{"p", {{"a", "nan"}}}});
  RunFiles run;
  for (int step : {1, 2}) run.metrics.push_back(Json{{"step", step}, {"probes", json}}.dump());
  Page page("run", "");
  add_probe_sections(page, run);
  const std::string html = page.html();
  for (const char* text : {"Residual stream", "Attention entropy", "Gradient norm: mlp.down.weight",
                           "block 0", "RMS of the residual stream"})
    CHECK_THAT(html, Contains(text));
  Page none("run", "");
  add_probe_sections(none, RunFiles{});
  CHECK(none.html().find("<section") == std::string::npos);
}
