// What models with an encoder write: an encoder-decoder with its two caches, an encoder in place of
// masks.
#include "models/infill.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "autograd/functional.h"
#include "data/tokenizer_train.h"
#include "models/architecture.h"
#include "models/build.h"
#include "models/training_sample.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

ModelConfig small_model(const char* preset) {
  RunConfig c = find_preset(preset).config;
  c.model.context = 24, c.model.d_model = 32, c.model.head_dim = 0, c.model.d_ff = 64;
  c.model.init_std = 0.3;  // logits that are far apart
  c.resolve_and_check(preset);
  return c.model;
}

std::unique_ptr<nn::EncoderDecoder> random_writer(const char* preset, uint64_t seed = 3) {
  register_all();
  auto model = build_encoder_decoder(small_model(preset), DType::f64, kCPU);
  initialise(*model, small_model(preset), seed);
  return model;
}

std::vector<int64_t> written_by(nn::EncoderDecoder& model, const std::vector<int64_t>& source,
                                const tally::GenerateOptions& o,
                                std::optional<int64_t> end = std::nullopt,
                                std::string* why = nullptr) {
  std::vector<int64_t> ids;
  const GenerateStats stats = generate_ids(model, source, 0, o, end, [&](int64_t id) {
    ids.push_back(id);
    return true;
  });
  if (why) *why = stats.why;
  return ids;
}

/// A tokenizer of the bytes and what a preset's objective needs.
Tokenizer tokenizer_of(const RunConfig& c, const std::string& text_file) {
  TokenizerTrainOptions o;
  o.special = objective_specials(c.model, c.train);
  o.vocab_size = 256 + static_cast<int64_t>(o.special.size());
  return train_tokenizer({text_file}, o);
}

/// A preset that was trained on a text in which a letter is among its own kind.
struct Stammer {
  Stammer(const char* preset, int64_t steps) {
    register_all();
    fs::create_directories(folder.path);
    {
      std::ofstream out(folder.path + "/text.txt");
      for (int i = 0; i < 400; ++i) out << std::string(64, static_cast<char>('a' + i * 7 % 23));
    }
    config = find_preset(preset).config;
    config.model.context = 32;
    config.model.embedding_dropout = config.model.residual_dropout =
        config.model.attention_dropout = 0;
    config.train.steps = steps, config.train.warmup = 10, config.train.final_lr_fraction = 0.1;
    config.resolve_and_check(preset);
    tokenizer = tokenizer_of(config, folder.path + "/text.txt");
    tokens = objective_tokens(config.model, tokenizer);
    trainer = std::make_unique<Trainer>(config, open_data(folder.path + "/text.txt", tokenizer),
                                        tokenizer.byte_lengths(), DType::f32, kCPU, tokens);
    while (trainer->steps_done() < steps) trainer->step();
  }
  Scratch folder;
  RunConfig config;
  Tokenizer tokenizer = Tokenizer::bytes();
  ObjectiveTokens tokens;
  std::unique_ptr<Trainer> trainer;
};

tally::GenerateOptions greedy(int64_t tokens) {
  tally::GenerateOptions o;
  o.max_new_tokens = tokens;
  o.sampling.temperature = 0;
  return o;
}

}  // namespace

TEST_CASE("infill: text written with the caches is that of the full pass", "[model][generate]") {
  size_t distinct = 0;
  for (const char* preset : {"t5-smoke", "t5-v1.1-smoke", "transformer-smoke"}) {
    INFO(preset);
    const auto model = random_writer(preset);
    const std::vector<int64_t> source = {7, 200, 31, 44, 5, 90, 12};
    const Tensor read = from_host<int64_t>(source, {1, 7}, kCPU);
    const auto ids = written_by(*model, source, greedy(16));
    REQUIRE(ids.size() == 16);
    std::vector<int64_t> seen = {0};
    seen.insert(seen.end(), ids.begin(), ids.end() - 1);
    const Tensor all = from_host<int64_t>(seen, {1, 16}, kCPU);
    const auto full = to_host<double>(model->batch_logits({all, {}, read, {}}));
    const int64_t vocab = model->vocab();
    double worst = 0, largest = 0;
    auto cache = model->make_cache(model->encode(read), 16);
    for (int64_t t = 0; t < 16; ++t) {
      const auto row = full.begin() + t * vocab;
      CHECK(std::max_element(row, row + vocab) - row == ids[static_cast<size_t>(t)]);
      const Tensor one = contiguous(all.narrow(1, t, 1));
      const auto cached = to_host<double>(model->next_logits(one, cache));
      for (int64_t v = 0; v < vocab; ++v) {
        worst = std::max(worst, std::fabs(cached[static_cast<size_t>(v)] - row[v]));
        largest = std::max(largest, std::fabs(row[v]));
      }
    }
    CHECK(worst <= 1e-12 * largest);
    distinct += std::set<int64_t>(ids.begin(), ids.end()).size();
    // What is read decides what is written.
    CHECK(written_by(*model, {9, 8, 7, 6}, greedy(16)) != ids);
  }
  CHECK(distinct > 10);
}

TEST_CASE("infill: a seed gives one text, and what ends it is said", "[model][generate]") {
  const auto model = random_writer("t5-v1.1-smoke");
  const std::vector<int64_t> source = {7, 200, 31};
  tally::GenerateOptions o;
  o.max_new_tokens = 12, o.seed = 5;
  const auto ids = written_by(*model, source, o);
  CHECK(written_by(*model, source, o) == ids);
  o.seed = 6;
  CHECK(written_by(*model, source, o) != ids);
  std::string why;
  const auto whole = written_by(*model, source, greedy(12), std::nullopt, &why);
  CHECK(why == "length");
  const auto end = std::ranges::find(whole, whole[4]);
  const auto cut = written_by(*model, source, greedy(12), whole[4], &why);
  CHECK(why == "end of text");
  CHECK(std::vector(whole.begin(), end) == cut);
  CHECK(written_by(*model, source, greedy(100), std::nullopt, &why).size() == 24);
  CHECK(why == "context");
  CHECK(written_by(*model, source, greedy(0)).empty());
  CHECK_THROWS_WITH(written_by(*model, {}, o), Contains("there is no text to read"));
  CHECK_THROWS_WITH(written_by(*model, std::vector<int64_t>(25, 1), o),
                    Contains("the prompt has 25 tokens, the model's context holds 24"));
  o.max_new_tokens = -1;
  CHECK_THROWS_WITH(written_by(*model, source, o), Contains("must not be negative"));
}

TEST_CASE("infill: spans go where their sentinels stand", "[generate]") {
  ObjectiveTokens t;
  t.first_sentinel = 99, t.sentinels = 3;
  using Ids = std::vector<int64_t>;
  CHECK(filled_spans(Ids{1, 99, 2, 98, 3}, Ids{99, 4, 5, 98, 6, 97}, t) == Ids{1, 4, 5, 2, 6, 3});
  CHECK(filled_spans(Ids{98, 1, 99}, Ids{99, 4, 98}, t) == Ids{1, 4});
  CHECK(filled_spans(Ids{1, 99, 2, 97}, Ids{98, 4}, t) == Ids{1, 99, 2, 97});
  CHECK(filled_spans(Ids{1, 96, 2}, Ids{96, 4}, t) == Ids{1, 96, 2});  // no sentinel
}

TEST_CASE("infill: a trained encoder-decoder fills the holes of a text", "[training][generate]") {
  const Stammer a("t5-v1.1-smoke", 200);
  auto& model = static_cast<nn::EncoderDecoder&>(a.trainer->model());
  std::string streamed;
  const std::string prompt = "ggggggg<extra_id_0>gggggggg<extra_id_1>gg";
  const Written w = generate_text(model, a.tokenizer, a.tokens, prompt, greedy(20),
                                  [&](std::string_view piece) { streamed += piece; });
  CHECK(w.filled.size() > 17);
  CHECK(w.filled == std::string(w.filled.size(), 'g'));
  CHECK_THAT(w.text, Catch::StartsWith("<extra_id_0>g") && Contains("g<extra_id_1>g"));
  CHECK(w.text == streamed);
  CHECK(w.stats.why == "all filled");
  tally::GenerateOptions stops = greedy(20);
  stops.stop = {"0>g"};
  CHECK(generate_text(model, a.tokenizer, a.tokens, prompt, stops, [](std::string_view) {}).text ==
        "<extra_id_");
  ObjectiveTokens none = a.tokens;
  none.start = -1;
  CHECK_THROWS_WITH(generate_text(model, a.tokenizer, none, prompt, stops, [](std::string_view) {}),
                    Contains("begins to write from <pad>"));
}

TEST_CASE("infill: a sample says what the first window of the data hides", "[training][generate]") {
  for (const char* preset : {"t5-v1.1-smoke", "bert-smoke"}) {
    INFO(preset);
    const Stammer a(preset, 200);
    std::string shown;
    const TrainingSample sample = training_sample(*a.trainer, a.tokenizer, a.tokens, greedy(40),
                                                  [&](std::string_view piece) { shown += piece; });
    // The text's first 64 bytes are an a each, of which the window has 32; an encoder reads a few at
    // random in their place.
    const bool encoder = preset == std::string("bert-smoke");
    CHECK_THAT(sample.source, Contains(encoder ? "[MASK]" : "<extra_id_0>") && Contains("aaaa"));
    CHECK_THAT(sample.text,
               !Contains("[MASK]") && Catch::StartsWith(encoder ? "a" : "<extra_id_0>a"));
    CHECK(std::ranges::count(sample.text, 'a') >= (encoder ? 24 : 3));
    CHECK(shown == sample.source + "\n       -> " + sample.text);
    const TrainingSample again =
        training_sample(*a.trainer, a.tokenizer, a.tokens, greedy(40), [](std::string_view) {});
    CHECK(again.source == sample.source);
    CHECK(again.text == sample.text);
  }
}

TEST_CASE("infill: a trained encoder puts the right tokens in place of masks",
          "[training][generate]") {
  const Stammer a("bert-smoke", 200);
  auto& model = static_cast<nn::Encoder&>(a.trainer->model());
  const auto fill = [&](const std::string& prompt) {
    return fill_masks(model, a.tokenizer, a.tokens, prompt, greedy(1));
  };
  const Unmasked u = fill("ffff[MASK]ffffff[MASK]fffffffff");
  CHECK(u.text == std::string(21, 'f'));
  CHECK(u.tokens == std::vector<std::string>{"f", "f"});
  CHECK_THROWS_WITH(fill("fghi"), Contains("the prompt has none; put [MASK]"));
  CHECK_THROWS_WITH(fill("[MASK]" + std::string(32, 'a')),
                    Contains("has 33 tokens, the model's context holds 32"));
  ObjectiveTokens none;
  CHECK_THROWS_WITH(fill_masks(model, a.tokenizer, none, "[MASK]", greedy(1)),
                    Contains("the tokenizer has no [MASK]"));
}
