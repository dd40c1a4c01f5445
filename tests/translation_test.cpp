// Pairs of a text and what is to be written for it: how they lie in rows, and that models learn them.
#include "data/translation_pairs.h"

#include <catch2/catch.hpp>

#include "data/tokenizer_train.h"
#include "models/architecture.h"
#include "models/build.h"
#include "models/infill.h"
#include "models/training_sample.h"
#include "tests/message_of.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

// "2C" for "two c": four numbers, nine letters.
std::string pairs_text() {
  std::string text;
  for (char c = 'a'; c <= 'i'; ++c) {
    for (const auto& [word, digit] :
         {std::pair{"one", '1'}, {"two", '2'}, {"six", '6'}, {"ten", 'X'}})
      text += std::string(word) + " " + c + "\t" + digit + static_cast<char>(c - 32) + "\n";
  }
  return text;
}

struct Pairs {
  explicit Pairs(const char* preset, const std::function<void(RunConfig&)>& change = {}) {
    register_all();
    config = find_preset(preset).config;
    config.train.pairs = true, config.train.seq = 8, config.model.context = 16;
    config.train.batch = 8, config.train.lr = 1e-3;
    config.model.residual_dropout = config.model.embedding_dropout = 0;
    if (change) change(config);
    config.resolve_and_check(preset);
    fs::create_directories(folder.path);
    std::ofstream(text()) << pairs_text();
    TokenizerTrainOptions o;
    o.special = objective_specials(config.model, config.train);
    o.vocab_size = 256 + static_cast<int64_t>(o.special.size());
    tokenizer = train_tokenizer({text()}, o);
    tokens = objective_tokens(config.model, tokenizer, true);
    data = tokenize_pairs({text()}, tokenizer, config.train.seq, 0.1);
  }
  std::string text() const { return folder.path + "/pairs.txt"; }
  Trainer trainer() const {
    return Trainer(config, *data, tokenizer.byte_lengths(), DType::f32, kCPU, tokens);
  }

  Scratch folder;
  RunConfig config;
  Tokenizer tokenizer = Tokenizer::bytes();
  ObjectiveTokens tokens;
  std::optional<TokenSplits> data;
};

std::string message_for(const std::string& text, int64_t length = 8, double val = 0) {
  const Scratch folder;
  fs::create_directories(folder.path);
  const std::string path = folder.path + "/x.txt";
  std::ofstream(path) << text;
  return message_of([&] { tokenize_pairs({path}, Tokenizer::bytes(true), length, val); });
}

}  // namespace

TEST_CASE("pairs: each is a row with its lengths, every n-th is held out", "[data]") {
  const Scratch folder;
  fs::create_directories(folder.path);
  const std::string path = folder.path + "/x.txt";
  std::ofstream(path) << "ab\tcde\n\nf\tg\r\nhi\tj\nk\tl";
  const Tokenizer bytes = Tokenizer::bytes(true);
  const TokenSplits splits = tokenize_pairs({path}, bytes, 4, 0.5);
  REQUIRE(splits.val);
  CHECK(splits.train.meta().documents == 2);
  CHECK(splits.val->meta().documents == 2);
  CHECK(splits.train.meta().source_bytes == 8);
  const Dataset rows(splits.train, pair_row(4));
  REQUIRE(rows.windows() == 2);
  std::vector<int64_t> row(10), next(10);
  rows.windows_in_order(0, row, next);
  CHECK(row == std::vector<int64_t>{2, 4, 'a', 'b', 256, 256, 'c', 'd', 'e', 256});
  const TokenPair pair = pair_of(row);
  CHECK(std::vector<int64_t>(pair.source.begin(), pair.source.end()) ==
        std::vector<int64_t>{'a', 'b'});
  CHECK(std::vector<int64_t>(pair.target.begin(), pair.target.end()) ==
        std::vector<int64_t>{'c', 'd', 'e', 256});
  // Whatever the epoch, a sample is a whole pair.
  for (int64_t i = 0; i < 20; ++i) {
    rows.sample(i, row, next);
    CHECK((pair_of(row).source[0] == 'a' || pair_of(row).source[0] == 'h'));
  }
  row[0] = 5;
  CHECK_THROWS_WITH(pair_of(row), Contains("lengths of its two texts"));
}

TEST_CASE("pairs: lines that are none are refused with their number", "[data][error]") {
  CHECK_THAT(message_for("a\tb\nabc\n"), Contains("x.txt, line 2") && Contains("has 0 tabs"));
  CHECK_THAT(message_for("a\tb\tc\n"), Contains("line 1") && Contains("has 2 tabs"));
  CHECK_THAT(message_for("\tb\n"), Contains("the first has none"));
  CHECK_THAT(message_for("b\t\n"), Contains("the second has none"));
  CHECK_THAT(message_for("123456789\tb\n"),
             Contains("the text has 9 tokens; at most 8") && Contains("raise train.seq"));
  CHECK_THAT(message_for("b\t12345678\n"), Contains("what is to be written has 9 tokens"));
  CHECK(message_for("12345678\t1234567\n") == "accepted");
  CHECK_THAT(message_for("\n\n"), Contains("a text, a tab and a text; there are none"));
  CHECK_THAT(message_for("a\tb\n", 8, 0.5), Contains("every 2-th pair needs more"));
  CHECK_THAT(message_for("a\tb\n", 8, 0.9), Contains("from 0 to 0.5"));
  CHECK_THAT(message_of([] { tokenize_pairs({"x"}, Tokenizer::bytes(false), 4); }),
             Contains("must have an end of text"));
}

TEST_CASE("pairs: what the fields cannot mean is refused by name", "[config][error]") {
  const auto refusal = [](const char* preset, const std::function<void(TrainConfig&)>& change) {
    RunConfig c = find_preset(preset).config;
    c.train.pairs = true;
    change(c.train);
    return message_of([&] { c.resolve_and_check(preset); });
  };
  CHECK_THAT(refusal("llama-smoke", [](TrainConfig&) {}), Contains("pairs = true has no meaning"));
  CHECK_THAT(refusal("bert-smoke", [](TrainConfig&) {}), Contains("pairs = true has no meaning"));
  CHECK_THAT(refusal("t5-smoke", [](TrainConfig& t) { t.corruption = 0.3; }),
             Contains("corruption and mean_span have no meaning with pairs"));
  CHECK(refusal("t5-smoke", [](TrainConfig&) {}) == "accepted");
}

TEST_CASE("pairs: the loss is that of the targets alone, whatever fills the rows up",
          "[training]") {
  const Pairs p("t5-v1.1-smoke");
  const Objective objective(p.config.model, p.config.train, p.tokens,
                            objective_window(p.config.model, p.config.train));
  CHECK((objective.length() == 8 && objective.source() == 8));
  const auto model = build_language_model(p.config.model, DType::f64, kReference);
  initialise(*model, p.config.model, 3);
  std::vector<int64_t> ids(8), targets(8), source(8);
  std::vector<uint8_t> mask(8);
  const Dataset data(p.data->train, pair_row(8));
  objective.batch(data, 5, {ids, targets, source, mask});
  const auto loss = [&](int64_t read, int64_t written, bool masked) {
    const auto first = [](const auto& v, int64_t n) { return std::span(v).first(size_t(n)); };
    const nn::ModelBatch batch{
        from_host<int64_t>(first(ids, written), {1, written}, kReference),
        from_host<int64_t>(first(targets, written), {1, written}, kReference),
        from_host<int64_t>(first(source, read), {1, read}, kReference),
        masked ? from_host<uint8_t>(first(mask, read), {1, read}, kReference) : Tensor()};
    Tensor stats;
    const PauseTape values_only;
    return model->batch_loss(batch, 0, nullptr, &stats).item();
  };
  CHECK(std::count(mask.begin(), mask.end(), 1) == 5);  // "two c", and the end of text behind "2C"
  CHECK(std::count(targets.begin(), targets.end(), -100) == 5);
  CHECK(targets[2] == static_cast<int64_t>(*p.tokenizer.eot()));
  CHECK(ids[0] == p.tokens.start);
  CHECK(ids[1] == targets[0]);
  const double alone = loss(5, 3, false);
  CHECK(loss(8, 8, true) == Approx(alone).epsilon(1e-12));
  source[7] = 'z';  // what is masked is not read
  CHECK(loss(8, 8, true) == Approx(alone).epsilon(1e-12));
  CHECK(std::abs(loss(8, 8, false) - alone) > 1e-6);
}

TEST_CASE("pairs: encoder-decoders learn to write them, with the same bits in every mode",
          "[training][generate]") {
  for (const char* preset : {"t5-v1.1-smoke", "transformer-smoke"}) {
    INFO(preset);
    const Pairs p(preset, [](RunConfig& c) { c.train.steps = 600; });
    Trainer replayed = p.trainer(), eager = p.trainer();
    replayed.set_mode(StepMode::replayed), eager.set_mode(StepMode::eager);
    for (int i = 0; i < 4; ++i) CHECK(replayed.step().loss == eager.step().loss);
    CHECK(replayed.training_step().why_not_replayed().empty());
    const double before = replayed.evaluate().loss;
    for (int i = 0; i < 596; ++i) replayed.step();
    CHECK(replayed.evaluate().loss < 0.1 * before);
    // The first three were held out.
    GenerateOptions g;
    g.sampling.temperature = 0, g.max_new_tokens = 8;
    for (const auto& [given, wanted] :
         {std::pair{"two c", "2C"}, {"ten e", "XE"}, {"two h", "2H"}, {"one a", "1A"}}) {
      const Written written =
          generate_text(static_cast<nn::EncoderDecoder&>(replayed.model()), p.tokenizer, p.tokens,
                        given, g, [](std::string_view) {});
      CHECK(written.text == wanted);
      CHECK(written.stats.why == "end of text");
    }
    const TrainingSample sample =
        training_sample(replayed, p.tokenizer, p.tokens, g, [](std::string_view) {});
    CHECK(sample.source == "two c");
    CHECK(sample.text == "2C");
  }
}
