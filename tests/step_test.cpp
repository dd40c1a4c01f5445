// A step walked call by call: values, saved tensors, filters, the page, and two steps compared.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cli/step_view.h"
#include "models/architecture.h"
#include "models/batch_rows.h"
#include "models/build.h"
#include "models/profile.h"
#include "models/report.h"
#include "models/training_step.h"
#include "models/walk.h"
#include "optim/adamw.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::cli;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

Walk walk_of(const ModelConfig& config, uint64_t seed = 1, int64_t first = 4,
             const std::function<void(nn::LanguageModel&)>& change = {}, bool update = true) {
  const auto model = build_language_model(config, DType::f32, kCPU);
  initialise(*model, config, seed);
  if (change) change(*model);
  optim::AdamW optimizer(optim::decay_groups(*model, 0.1), {});
  WalkOptions o;
  o.first = first;
  Generator masks{5};
  o.dropout = &masks;
  const bool reads = config.architecture == Architecture::encoder_decoder;
  const auto ids = [&](uint64_t number) { return random_ids({2, 12}, config.vocab, number, kCPU); };
  const nn::ModelBatch batch{ids(3), ids(4), reads ? ids(5) : Tensor(), {}};
  o.counts_targets = config.architecture != Architecture::decoder;
  return walk_step(*model, {&batch, 1}, o, update ? &optimizer : nullptr);
}
constexpr int64_t kAll = int64_t{1} << 40;

}  // namespace

TEST_CASE("step: its calls are those of the account on meta, with what each saves", "[step]") {
  for (const char* preset :
       {"llama-smoke", "gpt-smoke", "bert-smoke", "t5-smoke", "transformer-smoke"}) {
    INFO(preset);
    const ModelConfig config = test::preset_model(preset);
    const Walk walk = walk_of(config);
    ReportOptions r;
    r.batch = 2;
    r.seq = 12;
    r.train = true;
    const Report meta = make_report(config, r);
    REQUIRE(walk.calls.size() == meta.entries.size());
    double saved = 0;
    for (size_t i = 0; i < walk.calls.size(); ++i) {
      const WalkedCall& c = walk.calls[i];
      CHECK(c.number == static_cast<int64_t>(i) + 1);
      CHECK(std::string(c.entry.op) == meta.entries[i].op);
      CHECK(std::string(c.entry.module) == meta.entries[i].module);
      CHECK(c.formula.size() > 4);
      CHECK(c.views.size() == meta.entries[i].shapes.size());
      saved += c.saved_bytes();
    }
    // What the account calls saved holds the loss and the tokens too.
    CHECK(saved > 0.5 * meta.saved);
    // Ids, targets and source, which are there before its pass, are saved by calls, as is 1 / targets.
    const bool decoder = config.architecture == Architecture::decoder;
    CHECK(saved <= meta.saved + (decoder ? 0 : 3 * 2 * 12 * 8 + 4));
    CHECK(walk.loss == Approx(std::log(static_cast<double>(config.vocab))).epsilon(0.2));
    CHECK(walk.grad_norm > 0);
  }
}

TEST_CASE("step: a walk has the bits of a step that nobody looks at", "[step]") {
  const ModelConfig config = test::preset_model("llama-smoke");
  const Tensor ids = random_ids({2, 12}, config.vocab, 3, kCPU),
               targets = random_ids({2, 12}, config.vocab, 4, kCPU);
  const auto trained = [&](bool walked) {
    const auto model = build_model(config, DType::f32, kCPU);
    initialise(*model, config, 1);
    optim::AdamW optimizer(optim::decay_groups(*model, 0.1), {});
    if (walked) {
      const nn::ModelBatch batch{ids, targets, {}, {}};
      walk_step(*model, {&batch, 1}, {}, &optimizer);
    } else {
      model->requires_grad();
      {
        Tape tape;
        tape.backward(model->loss(ids, targets));
      }
      const optim::ClippedNorm clip = optim::clip_factor(optimizer.groups(), 1);
      optimizer.step(1e-3, clip.factor);
    }
    std::vector<std::vector<float>> out;
    for (auto& [name, t] : model->named_parameters()) out.push_back(to_host<float>(t));
    return out;
  };
  CHECK(trained(true) == trained(false));
}

TEST_CASE(
    "step: text and JSON show formula, shapes, cost and values of the calls that are asked for",
    "[step]") {
  const Walk walk = walk_of(test::preset_model("llama-smoke"));
  const auto gates = filtered(walk, {1, 0, "gate", "blocks[0]"});
  REQUIRE(gates.size() == 2);
  const std::string text = step_text(gates);
  for (const char* part : {"gate.forward  in blocks[0].mlp", "y = act(a) b", "-> y", "saved: a",
                           "gate.backward", "FLOP", "rms", "f32"})
    CHECK_THAT(text, Contains(part));
  const Json json = step_json(gates);
  CHECK(json[0]["op"] == "gate.forward");
  CHECK(json[0]["phase"] == "forward");
  CHECK(json[0]["views"][0]["values"]["first"].size() == 4);
  CHECK(json[0]["flops"].get<double>() > 0);
  CHECK(filtered(walk, {3, 5, "", ""}).size() == 3);
}

TEST_CASE("step: a filter that fits nothing says what there is", "[step][error]") {
  const Walk walk = walk_of(test::preset_model("llama-smoke"));
  CHECK_THROWS_WITH(filtered(walk, {1, 0, "gaet", ""}), Contains("no call of this step is named"));
  CHECK_THROWS_WITH(filtered(walk, {1, 0, "", "block[0]"}), Contains("no call of this step is in"));
  CHECK_THROWS_WITH(filtered(walk, {9999, 0, "", ""}), Contains("the step has calls 1 to"));
  CHECK_THROWS_WITH(filtered(walk, {5, 4, "", ""}), Contains("no call has such a number"));
  CHECK_THROWS_WITH(filtered(walk, {1, 2, "adamw", ""}), Contains("is among calls 1 to 2"));
}

TEST_CASE("step: the page stands alone and has every call to unfold", "[step][report]") {
  const Walk walk = walk_of(test::preset_model("gpt-smoke"));
  const std::string html = step_page("Step <1>", "tokens", walk, walk.calls);
  CHECK_THAT(html,
             Contains("Step &lt;1&gt;") && Contains("softmax(s, sink) v") && Contains("optimizer"));
  CHECK(html.find("http") == html.find("http://www.w3.org"));  // the name space of SVG, no link
  size_t calls = 0;
  for (size_t at = 0; (at = html.find("<details class=\"call\">", at)) != std::string::npos; ++at)
    ++calls;
  CHECK(calls == walk.calls.size());
}

TEST_CASE("compare: the same weights and batch differ nowhere", "[step]") {
  const ModelConfig config = test::preset_model("llama-smoke");
  const Walk a = walk_of(config, 1, kAll), b = walk_of(config, 1, kAll);
  const WalkDifference d = first_difference(a, b);
  CHECK(d.what == WalkDifference::What::none);
  CHECK(d.compared == static_cast<int64_t>(a.calls.size()));
}

TEST_CASE("compare: one changed weight names the first op that reads it, and how far it is off",
          "[step]") {
  const ModelConfig config = test::preset_model("llama-smoke");
  const auto nudge = [](nn::LanguageModel& model) {
    for (auto& [name, t] : model.named_parameters())
      if (name == "blocks.1.mlp.down.weight") t.host<float>()[0] += 0.5F;
  };
  const Walk a = walk_of(config, 1, kAll), b = walk_of(config, 1, kAll, nudge);
  const WalkDifference d = first_difference(a, b);
  CHECK(d.what == WalkDifference::What::values);
  CHECK(d.a == "linear.forward in blocks[1].mlp");
  CHECK(d.output == "y");
  CHECK(d.differing == 24);  // one column of (2, 12, D)
  CHECK(d.largest > 0);
  CHECK(std::abs(d.value_a - d.value_b) == d.largest);
  CHECK(first_difference(a, b, 1e9).what == WalkDifference::What::none);
}

TEST_CASE("compare: models of other ops part at the first other op", "[step]") {
  ModelConfig one = test::preset_model("llama-smoke"), two = one;
  two.layers = one.layers + 1;
  const WalkDifference d =
      first_difference(walk_of(one, 1, kAll, {}, false), walk_of(two, 1, kAll, {}, false));
  CHECK(d.what == WalkDifference::What::ops);
  CHECK(d.a != d.b);
}

TEST_CASE("compare: no tolerance takes an infinity for a number", "[step]") {
  const ModelConfig config = test::preset_model("llama-smoke");
  const auto spoil = [](nn::LanguageModel& model) {
    for (auto& [name, t] : model.named_parameters())
      if (name == "blocks.0.mlp.down.weight") t.host<float>()[0] = INFINITY;
  };
  const WalkDifference d = first_difference(walk_of(config, 1, kAll, {}, false),
                                            walk_of(config, 1, kAll, spoil, false), 1e9);
  CHECK(d.what == WalkDifference::What::values);
  CHECK(d.a == "linear.forward in blocks[0].mlp");
}

TEST_CASE("step: micro-batches add up to training's step, and layers are computed again",
          "[step]") {
  const ModelConfig config = test::preset_model("llama-smoke");
  const auto model = build_model(config, DType::f32, kCPU),
             twin = build_model(config, DType::f32, kCPU);
  for (nn::Decoder* m : {model.get(), twin.get()}) {
    initialise(*m, config, 1);
    m->recompute.assign(static_cast<size_t>(config.layers), true);
  }
  std::vector<nn::ModelBatch> batches;
  for (uint64_t seed : {5, 7, 9})
    batches.push_back({random_ids({2, 12}, config.vocab, seed, kCPU),
                       random_ids({2, 12}, config.vocab, seed + 1, kCPU),
                       {},
                       {}});
  Generator generator{7};
  const auto adamw = [](nn::Module& m) {
    return std::make_unique<optim::AdamW>(optim::decay_groups(m, 0.1), optim::AdamW::Options{});
  };
  TrainingStep training(*twin, adamw, {2, 12, 3, 1}, generator);
  const auto result = training.gradients([&](int64_t micro, const BatchSpans& to) {
    const nn::ModelBatch& b = batches[static_cast<size_t>(micro)];
    std::ranges::copy(to_host<int64_t>(b.ids), to.ids.begin());
    std::ranges::copy(to_host<int64_t>(b.targets), to.targets.begin());
  });
  const auto optimizer = adamw(*model);
  const Walk walk = walk_step(*model, batches, {}, optimizer.get());
  CHECK(walk.loss == result.loss);
  CHECK(walk.grad_norm == result.norm);
  const auto again = std::count_if(walk.calls.begin(), walk.calls.end(), [](const WalkedCall& c) {
    return c.entry.phase == Phase::recompute;
  });
  CHECK(again > 0);
  CHECK(again % 3 == 0);
}

TEST_CASE("step: a walk of what an encoder reads has the bits of training's step", "[step]") {
  for (const char* preset : {"bert-smoke", "t5-v1.1-smoke", "transformer-smoke"}) {
    INFO(preset);
    RunConfig c = find_preset(preset).config;
    c.model.residual_dropout = c.model.attention_dropout = 0.1;
    c.train.pairs = preset == std::string("transformer-smoke");
    c.train.seq = 12, c.train.batch = 2, c.train.accumulation = 3;
    c.resolve_and_check(preset);
    ObjectiveTokens tokens;
    tokens.mask = tokens.start = 1, tokens.first_sentinel = c.model.vocab - 1, tokens.sentinels = 8;
    const int64_t window = objective_window(c.model, c.train);
    const Objective objective(c.model, c.train, tokens, window);
    std::vector<TokenId> ids;  // rows of pairs begin with their lengths
    for (TokenId i = 0; i < 20 * window + 1; ++i)
      ids.push_back(c.train.pairs && i % window < 2 ? 5 + i % 7 : 2 + i * i % 200);
    const Dataset data(TokenFile::from_ids(ids, {}), window);
    const auto adamw = [](nn::Module& m) {
      return std::make_unique<optim::AdamW>(optim::decay_groups(m, 0.1), optim::AdamW::Options{});
    };
    const auto build = [&] {
      auto model = build_language_model(c.model, DType::f32, kCPU);
      initialise(*model, c.model, 1);
      return model;
    };
    const auto weights_of = [](nn::Module& m) {
      std::vector<std::vector<float>> out;
      for (auto& [name, t] : m.named_parameters()) out.push_back(to_host<float>(t));
      return out;
    };
    const auto model = build(), twin = build();
    Generator generator{7}, same{7};
    TrainingStep training(*twin, adamw,
                          {2, objective.length(), 3, 1, objective.source(),
                           objective.counts_targets(), objective.masks_source()},
                          generator);
    const auto result = training.gradients(
        [&](int64_t micro, const BatchSpans& to) { objective.batch(data, micro, to); });
    training.update(1e-3);
    std::vector<nn::ModelBatch> batches;
    for (int64_t micro = 0; micro < 3; ++micro) {
      BatchRows rows(objective, 2);
      objective.batch(data, micro, rows.spans());
      batches.push_back(rows.on(kCPU));
    }
    WalkOptions o;
    o.dropout = &same, o.counts_targets = objective.counts_targets();
    const auto optimizer = adamw(*model);
    const Walk walk = walk_step(*model, batches, o, optimizer.get());
    CHECK(walk.loss == result.loss);
    CHECK(walk.grad_norm == result.norm);
    CHECK(weights_of(*model) == weights_of(*twin));
  }
}
