// Encoders trained on hidden tokens and encoder-decoders on spans that are cut out: one trainer with
// the decoders, so the same promises.
#include "models/objective.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "autograd/functional.h"
#include "core/parallel.h"
#include "data/tokenizer_train.h"
#include "models/architecture.h"
#include "models/build.h"
#include "optim/adamw.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

/// A scaled-down preset in one layer of 32 numbers a token, with dropout, and its tokenizer.
struct Asked {
  explicit Asked(const char* preset, const std::function<void(RunConfig&)>& change = {}) {
    register_all();
    config = find_preset(preset).config;
    config.model.layers = 1, config.model.d_model = 32, config.model.head_dim = 0;
    config.model.d_ff = 64, config.model.context = 32;
    config.model.residual_dropout = config.model.attention_dropout = 0.1;
    config.train.batch = 4, config.train.steps = 12, config.train.warmup = 2;
    if (change) change(config);
    config.resolve_and_check(preset);
    fs::create_directories(folder.path);
    std::ofstream(text()) << some_text(400);
    const auto special = objective_specials(config.model, config.train);
    TokenizerTrainOptions o;
    o.vocab_size = 256 + static_cast<int64_t>(special.size()), o.special = special;
    tokenizer = train_tokenizer({text()}, o);
    tokens = objective_tokens(config.model, tokenizer);
    DataOptions d;
    d.text.val_fraction = 0.1;
    data = open_data(text(), tokenizer, d);
  }
  std::string text() const { return folder.path + "/text.txt"; }
  std::unique_ptr<Trainer> trainer(StepMode mode = StepMode::replayed) const {
    auto t = std::make_unique<Trainer>(config, *data, tokenizer.byte_lengths(), DType::f32, kCPU,
                                       tokens);
    t->set_mode(mode);
    return t;
  }
  Objective objective() const { return {config.model, config.train, tokens, config.train.seq}; }

  Scratch folder;
  RunConfig config;
  Tokenizer tokenizer = Tokenizer::bytes();
  ObjectiveTokens tokens;
  std::optional<TokenSplits> data;
};

const std::vector<const char*>& presets_asked() {
  static const std::vector<const char*> names = {"bert-smoke", "t5-v1.1-smoke",
                                                 "transformer-smoke"};
  return names;
}

struct Rows {
  Rows(const Objective& o, int64_t rows)
      : ids(static_cast<size_t>(rows * o.length())),
        targets(ids.size()),
        source(static_cast<size_t>(rows * o.source())) {}
  BatchSpans spans() { return {ids, targets, source}; }
  bool operator==(const Rows&) const = default;
  std::vector<int64_t> ids, targets, source;
};

std::string refusal(const char* preset, const std::function<void(RunConfig&)>& change) {
  RunConfig c = find_preset(preset).config;
  change(c);
  try {
    c.resolve_and_check(preset);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("objective: the scaled-down presets learn", "[training]") {
  for (const char* preset : {"bert-smoke", "t5-smoke", "t5-v1.1-smoke", "transformer-smoke"}) {
    const Asked a(preset, [&](RunConfig& c) {
      c = find_preset(preset).config;
      c.train.steps = 60, c.train.warmup = 6;
    });
    const auto t = a.trainer();
    const double before = t->evaluate().loss;
    const auto got = losses(*t, 60);
    const Evaluation after = t->evaluate();
    INFO(preset << ": " << before << " to " << after.loss);
    CHECK(got.back() < 0.8 * got.front());
    CHECK(after.loss < 0.8 * before);
    CHECK(after.bits_per_byte > 0);
    CHECK(after.perplexity() == Approx(std::exp(after.loss)));
    CHECK(t->training_step().why_not_replayed().empty());
    CHECK(t->training_step().recorded_calls() > 100);
  }
}

TEST_CASE("objective: replayed, planned and eager steps have the same bits", "[training]") {
  for (const char* preset : presets_asked()) {
    const Asked a(preset, [](RunConfig& c) { c.train.accumulation = 3; });
    INFO(preset);
    std::vector<double> all[3];
    std::vector<std::vector<float>> trained[3];
    for (const StepMode mode : {StepMode::eager, StepMode::planned, StepMode::replayed}) {
      const auto t = a.trainer(mode);
      all[static_cast<size_t>(mode)] = losses(*t, 6);
      trained[static_cast<size_t>(mode)] = weights(*t);
    }
    for (const size_t mode : {1, 2}) {
      CHECK(all[mode] == all[0]);
      CHECK(trained[mode] == trained[0]);
    }
  }
}

TEST_CASE("objective: an encoder with windows and documents has the same bits however it runs",
          "[training]") {
  const Asked a("bert-smoke", [](RunConfig& c) {
    c.model.window = 5, c.model.attention_global = 1, c.model.document_end = 256;
  });
  REQUIRE(a.tokenizer.eot() == 256u);
  std::vector<double> all[2];
  std::vector<std::vector<float>> trained[2];
  for (const StepMode mode : {StepMode::eager, StepMode::replayed}) {
    const size_t i = mode == StepMode::replayed;
    const auto t = a.trainer(mode);
    all[i] = losses(*t, 6);
    trained[i] = weights(*t);
  }
  CHECK(all[1] == all[0]);
  CHECK(trained[1] == trained[0]);
}

TEST_CASE("objective: what is computed again leaves the bits of a step", "[training][recompute]") {
  for (const char* preset : presets_asked()) {
    std::vector<double> all[2];
    std::vector<std::vector<float>> trained[2];
    for (const size_t again : {0, 1}) {
      const Asked a(preset, [&](RunConfig& c) { c.train.recompute = again ? "all" : "none"; });
      const auto t = a.trainer();
      all[again] = losses(*t, 4);
      trained[again] = weights(*t);
      CHECK(t->training_step().why_not_replayed().empty());
    }
    INFO(preset);
    CHECK(all[1] == all[0]);
    CHECK(trained[1] == trained[0]);
  }
}

TEST_CASE("objective: the same bits for any number of threads and when broken off",
          "[training][threads][F48]") {
  const int before = num_threads();
  for (const char* preset : presets_asked()) {
    const Asked a(preset);
    INFO(preset);
    set_num_threads(1);
    const auto whole = a.trainer();
    const auto want = losses(*whole, 12);
    set_num_threads(3);
    const Scratch folder;
    RunDirectory run = new_run(folder);
    const auto first = a.trainer(), second = a.trainer();
    auto got = losses(*first, 7);
    first->save(run, {{"data", "x"}});
    second->resume(run, {{"data", "x"}});
    for (const double loss : losses(*second, 12)) got.push_back(loss);
    CHECK(got == want);
    CHECK(weights(*second) == weights(*whole));
    CHECK(second->evaluate().loss == whole->evaluate().loss);
  }
  set_num_threads(before);
}

TEST_CASE("objective: micro-batches give the mean over all that is asked", "[training][F09]") {
  const Asked a("bert-smoke", [](RunConfig& c) {
    c.model.residual_dropout = c.model.attention_dropout = c.model.embedding_dropout = 0;
  });
  const int64_t length = a.objective().length();
  const Dataset windows(a.data->train, length, 1);
  Rows all(a.objective(), 8);
  a.objective().batch(windows, 3, all.spans());
  const auto norms = [&](int64_t rows) {
    const auto model = build_language_model(a.config.model, DType::f32, kCPU);
    initialise(*model, a.config.model, 1);
    Generator dropout;
    StepOptions o{rows, length, 8 / rows, 1};
    o.counts_targets = true;
    TrainingStep step(
        *model,
        [](nn::Module& m) {
          return std::make_unique<optim::AdamW>(optim::decay_groups(m, 0), optim::AdamW::Options{});
        },
        o, dropout);
    const auto r = step.gradients([&](int64_t micro, const BatchSpans& to) {
      const auto at = static_cast<std::ptrdiff_t>(micro * rows * length);
      std::copy_n(all.ids.begin() + at, to.ids.size(), to.ids.begin());
      std::copy_n(all.targets.begin() + at, to.targets.size(), to.targets.begin());
    });
    return r;
  };
  const auto one = norms(8), four = norms(2);
  CHECK(one.targets == four.targets);
  CHECK(four.loss == Approx(one.loss).epsilon(1e-6));
  CHECK(four.norm == Approx(one.norm).epsilon(1e-5));
  // The mean itself, not of means: rows ask for different numbers of tokens.
  double asked = 0;
  for (const int64_t t : all.targets) asked += t != kIgnoredTarget;
  CHECK(one.targets == asked);
  const auto model = build_language_model(a.config.model, DType::f32, kCPU);
  initialise(*model, a.config.model, 1);
  const Shape shape{8, length};
  const Tensor loss = model->batch_loss({from_host<int64_t>(all.ids, shape, kCPU),
                                         from_host<int64_t>(all.targets, shape, kCPU),
                                         {},
                                         {}},
                                        0, nullptr, nullptr);
  CHECK(one.loss == Approx(loss.item()).epsilon(1e-6));
}

TEST_CASE("objective: a batch is a function of its number, whatever was made before", "[data]") {
  for (const char* preset : presets_asked()) {
    INFO(preset);
    const Asked a(preset);
    const Objective o = a.objective();
    const Dataset windows(a.data->train, a.config.train.seq, 1);
    Rows first(o, 4), again(o, 4), other(o, 4), held(o, 4), half(o, 2);
    o.batch(windows, 5, first.spans());
    o.batch(windows, 6, other.spans());
    o.batch(windows, 5, again.spans());
    CHECK(first == again);
    CHECK(!(first == other));
    o.windows_in_order(windows, 0, held.spans());
    o.windows_in_order(windows, 2, half.spans());
    CHECK(std::equal(half.targets.begin(), half.targets.end(),
                     held.targets.begin() + static_cast<std::ptrdiff_t>(half.targets.size())));
  }
}

TEST_CASE("objective: an encoder-decoder reads a text with holes and is asked for what was there",
          "[data]") {
  const Asked a("t5-v1.1-smoke");
  const Objective o = a.objective();
  const int64_t window = a.config.train.seq;
  const Dataset windows(a.data->train, window, 1);
  Rows rows(o, 2);
  o.windows_in_order(windows, 1, rows.spans());
  std::vector<int64_t> text(static_cast<size_t>(2 * window)), next(text.size());
  windows.windows_in_order(1, text, next);
  const int64_t top = a.tokens.first_sentinel;
  CHECK(top == a.config.model.vocab - 1);
  CHECK(a.tokens.sentinels == 32);
  const auto is_sentinel = [&](int64_t id) { return id <= top && id > top - 32; };
  for (size_t row = 0; row < 2; ++row) {
    const auto part = [&](const std::vector<int64_t>& v) {
      const size_t n = v.size() / 2;
      return std::span(v).subspan(row * n, n);
    };
    const auto source = part(rows.source), targets = part(rows.targets), ids = part(rows.ids);
    std::vector<int64_t> whole;
    for (const int64_t id : source) {
      if (!is_sentinel(id)) {
        whole.push_back(id);
        continue;
      }
      auto at = std::ranges::find(targets, id);
      REQUIRE(at != targets.end());
      for (++at; !is_sentinel(*at); ++at) whole.push_back(*at);
    }
    CHECK(std::ranges::equal(whole, part(text)));
    CHECK(ids[0] == a.tokens.start);
    CHECK(std::equal(ids.begin() + 1, ids.end(), targets.begin()));
  }
}

TEST_CASE("objective: what does not fit the architecture is refused by name", "[config][error]") {
  CHECK_THAT(refusal("llama-smoke", [](RunConfig& c) { c.train.corruption = 0.3; }),
             Contains("corruption has no meaning for model.architecture = decoder"));
  CHECK_THAT(refusal("bert-smoke", [](RunConfig& c) { c.train.mean_span = 4; }),
             Contains("mean_span has no meaning for model.architecture = encoder"));
  CHECK_THAT(refusal("bert-smoke", [](RunConfig& c) { c.train.sentinels = 4; }),
             Contains("sentinels has no meaning"));
  CHECK_THAT(refusal("bert-smoke", [](RunConfig& c) { c.train.recompute = "2"; }),
             Contains("the model has 0 to 1"));
  CHECK_THAT(refusal("t5-smoke", [](RunConfig& c) { c.train.recompute = "4"; }),
             Contains("the model has 0 to 3"));
  CHECK(refusal("t5-smoke", [](RunConfig& c) { c.train.sample_every = 5; }) == "accepted");
  CHECK(refusal("t5-smoke", [](RunConfig& c) { c.train.corruption = 0.3; }) == "accepted");
  CHECK(refusal("bert-smoke", [](RunConfig& c) { c.train.corruption = 0.3; }) == "accepted");
}

TEST_CASE("objective: a window that hides more than there is room for is refused",
          "[training][error]") {
  const auto said = [](const std::function<void(TrainConfig&)>& change) {
    RunConfig c = find_preset("t5-smoke").config;
    c.resolve_and_check("t5-smoke");
    change(c.train);
    ObjectiveTokens tokens;
    tokens.first_sentinel = c.model.vocab - 1, tokens.sentinels = c.train.sentinels;
    try {
      Objective(c.model, c.train, tokens, c.train.seq);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(said([](TrainConfig&) {}) == "accepted");
  CHECK_THAT(said([](TrainConfig& t) { t.corruption = 0.9, t.sentinels = 65; }),
             Contains("more than model.context = 64; lower corruption"));
  CHECK_THAT(said([](TrainConfig& t) { t.sentinels = 3; }), Contains("need 4 sentinels; got 3"));
  CHECK(said([](TrainConfig& t) { t.sentinels = 4; }) == "accepted");
}

TEST_CASE("objective: a tokenizer that lacks its tokens is refused by name", "[config][error]") {
  const auto said = [](const char* preset, const Tokenizer& tokenizer) {
    RunConfig c = find_preset(preset).config;
    c.resolve_and_check(preset);
    try {
      objective_tokens(c.model, tokenizer);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  const Tokenizer bytes = Tokenizer::bytes(true);
  CHECK_THAT(said("bert-smoke", bytes), Contains("has no [MASK]"));
  CHECK_THAT(said("t5-smoke", bytes), Contains("has no <extra_id_0>"));
  CHECK(said("llama-smoke", bytes) == "accepted");
  // The start: <pad> where there is one, then the model's padding, then the end of text.
  TokenizerSpec spec = bytes.spec();
  for (const char* name : {"<extra_id_1>", "<extra_id_0>", "<pad>"}) {
    spec.added.push_back({name, static_cast<TokenId>(spec.tokens.size()), true});
    spec.tokens.emplace_back(name);
  }
  RunConfig c = find_preset("t5-smoke").config;
  const ObjectiveTokens t = objective_tokens(c.model, Tokenizer(spec));
  CHECK(t.first_sentinel == 258);
  CHECK(t.sentinels == 2);
  CHECK(t.start == 259);
  spec.added.pop_back(), spec.tokens.pop_back();
  CHECK(objective_tokens(c.model, Tokenizer(spec)).start == 256);
  c.model.padding_id = 0;
  CHECK(objective_tokens(c.model, Tokenizer(spec)).start == 0);
}
