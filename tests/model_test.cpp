#include <catch2/catch.hpp>
#include <cmath>

#include "autograd/functional.h"
#include "core/random.h"
#include "models/architecture.h"
#include "models/build.h"
#include "models/generate.h"
#include "models/parameters.h"
#include "models/report.h"
#include "models/run_directory.h"
#include "models/safetensor_file.h"
#include "models/zoo.h"
#include "optim/adamw.h"
#include "tests/data_helpers.h"
#include "tests/registered.h"

using namespace tally;

namespace {

RunConfig preset(const std::string& name, const std::function<void(ModelConfig&)>& change = {}) {
  RunConfig c = find_preset(name).config;
  if (change) change(c.model);
  c.resolve_and_check(name);
  return c;
}

std::unique_ptr<nn::Decoder> made(const ModelConfig& c, Device device = kCPU) {
  auto m = build_model(c, DType::f32, device);
  initialise(*m, c, 1);
  return m;
}

Tensor random_ids(int64_t b, int64_t t, int64_t vocab, uint64_t stream, Device device = kCPU) {
  std::vector<int64_t> ids(static_cast<size_t>(b * t));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = Philox::word(3, stream, i) % vocab;
  return from_host<int64_t>(ids, {b, t}, device);
}

}  // namespace

TEST_CASE("model: parameters are those that the configuration describes, for every preset",
          "[model]") {
  for (const Preset& p : presets()) {
    RunConfig c = p.config;
    c.resolve_and_check(p.name);
    const ModelOnBatch built = build_on_batch(c.model, DType::f32, kMeta, [](int64_t) {
      return empty({1, 1}, DType::i64, kMeta);
    });
    const auto specs = parameter_specs(c.model);
    const auto parameters = built.module->named_parameters();
    INFO(p.name);
    REQUIRE(parameters.size() == specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      CHECK(parameters[i].first == specs[i].name);
      CHECK(parameters[i].second.shape() == Shape(std::span<const int64_t>(specs[i].shape)));
    }
    CHECK(built.module->parameter_count() == parameter_count(c.model));
  }
}

TEST_CASE("model: decoding with the cache equals the full pass at every position",
          "[model][F03][F22]") {
  const auto grouped = [](ModelConfig& c) { c.heads = 4, c.kv_heads = 2; };
  for (const RunConfig& c :
       {preset("gpt-smoke"), preset("llama-smoke"), preset("llama-smoke", grouped)}) {
    const auto model = made(c.model);
    const int64_t t = 12;
    const Tensor ids = random_ids(2, t, c.model.vocab, 1);
    const auto full_pass = to_host<float>(model->logits(ids));
    float largest = 0;
    for (float v : full_pass) largest = std::max(largest, std::fabs(v));
    nn::KVCache cache = model->make_cache(2, t);
    const auto check_position = [&](const Tensor& logits, int64_t at) {
      const auto got = to_host<float>(logits);
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t v = 0; v < c.model.vocab; ++v) {
          const float want = full_pass[static_cast<size_t>((b * t + at) * c.model.vocab + v)];
          CHECK(std::fabs(got[static_cast<size_t>(b * c.model.vocab + v)] - want) <=
                1e-5F * largest);
        }
      }
    };
    check_position(model->next_logits(copy(ids.narrow(1, 0, 6)), cache), 5);
    CHECK(cache.length() == 6);
    for (int64_t at = 6; at < t; ++at) {
      check_position(model->next_logits(copy(ids.narrow(1, at, 1)), cache), at);
      CHECK(cache.length() == at + 1);
    }
    CHECK_THROWS_WITH(model->next_logits(copy(ids.narrow(1, 0, 1)), cache),
                      Catch::Contains("do not fit"));
  }
}

TEST_CASE("model: a tied head is one tensor, one state, one copy in the file, and does its work",
          "[model][F28]") {
  const RunConfig tied = preset("llama-smoke"),
                  apart = preset("llama-smoke", [](ModelConfig&m) { m.tied_head = false; });
  REQUIRE(tied.model.tied_head);
  const int64_t table = tied.model.vocab * tied.model.d_model;
  struct Counts {
    int64_t tables = 0, states = 0, stored = 0;
    double products = 0;
  };
  const auto count = [&](const ModelConfig& c) {
    const auto model = made(c);
    model->requires_grad();
    Counts n;
    const auto is_table = [&](const Tensor& t) { return t.shape() == Shape{c.vocab, c.d_model}; };
    for (const auto& [name, t] : model->named_parameters()) n.tables += is_table(t);
    optim::AdamW optimizer(optim::decay_groups(*model, 0.1), {});
    for (const auto& [name, t] : optimizer.state()) n.states += is_table(t);
    const test::TemporaryFolder folder;
    RunDirectory run = RunDirectory::create(folder / "run");
    run.save({1, {}}, model->named_parameters(), optimizer.state());
    const SafetensorFile file(run.latest() + "/model.safetensors");
    for (const StoredTensor& t : file.tensors()) n.stored += t.numel() == table;
    const Ledger ledger;
    Tape tape;
    tape.backward(model->loss(random_ids(1, 8, c.vocab, 1), random_ids(1, 8, c.vocab, 2)));
    n.products = ledger.model_total().full;
    return n;
  };
  const Counts one = count(tied.model), two = count(apart.model);
  CHECK((one.tables == 1 && one.states == 2 && one.stored == 1));
  CHECK((two.tables == 2 && two.states == 4 && two.stored == 2));
  CHECK(one.products == two.products);
  CHECK(parameter_count(apart.model) - parameter_count(tied.model) == table);
}

TEST_CASE("model: a block run a second time from the same generator state has the same masks",
          "[model][F19]") {
  const RunConfig c = preset("llama-smoke", [](ModelConfig& m) {
    m.residual_dropout = m.attention_dropout = m.embedding_dropout = 0.1;
  });
  const auto model = made(c.model);
  model->requires_grad();
  const Tensor ids = random_ids(2, 16, 256, 1), targets = random_ids(2, 16, 256, 2);
  const auto step = [&](Generator& dropout) {
    std::vector<std::vector<float>> out;
    {
      Tape tape;
      const Tensor loss = model->loss(ids, targets, 0, &dropout);
      out.push_back(to_host<float>(loss));
      tape.backward(loss);
    }
    for (auto& [name, w] : model->named_parameters()) {
      out.push_back(to_host<float>(w.grad()));
      w.set_grad({});
    }
    return out;
  };
  Generator plain(5), again(5);
  const auto want = step(plain);
  // What recomputation does: the values once without a tape, then once more from where it began.
  const uint64_t start = again.position();
  const float first = static_cast<float>(model->loss(ids, targets, 0, &again).item());
  CHECK(again.position() == plain.position());
  CHECK(first == want[0][0]);
  again.set_position(start);
  CHECK(step(again) == want);
  CHECK(again.position() == plain.position());
  CHECK(step(again) != want);  // the next step draws other masks
}

TEST_CASE("model: ids, lengths and targets that do not fit are refused",
          "[model][error][F07][F26][F39]") {
  const RunConfig c = preset("llama-smoke");
  const auto model = made(c.model);
  CHECK_THROWS_WITH(model->logits(from_host<int64_t>({1, 256}, {1, 2}, kCPU)),
                    Catch::Contains("position 1") && Catch::Contains("256"));
  CHECK_THROWS_WITH(model->logits(random_ids(1, 65, 256, 1)), Catch::Contains("context holds 64"));
  CHECK_THROWS_WITH(
      model->loss(random_ids(1, 2, 256, 1), from_host<int64_t>({3, -5}, {1, 2}, kCPU)),
      Catch::Contains("-5"));
}

TEST_CASE("model: the ledger and the peak on meta are those of the real step", "[model][memory]") {
  for (const char* name : {"gpt-smoke", "llama-smoke"}) {
    for (Device device : {kReference, kCPU}) {
      const RunConfig c = preset(name, [](ModelConfig& m) {
        m.residual_dropout = m.attention_dropout = m.embedding_dropout = 0.1;
      });
      std::string text[2];
      size_t peak[2];
      int k = 0;
      for (Device d : {kMeta, device}) {
        const auto model = made(c.model, d);
        model->requires_grad();
        const Tensor ids = random_ids(2, 16, 256, 1, d), targets = random_ids(2, 16, 256, 2, d);
        Generator dropout(5);
        const size_t before = backend(d).memory().live;
        backend(d).reset_peak();
        Ledger ledger;
        Tape tape;
        tape.backward(model->loss(ids, targets, 32, &dropout));
        text[k] = ledger.text();
        peak[k++] = backend(d).memory().peak - before;
      }
      CHECK(text[0] == text[1]);
      CHECK(peak[0] == peak[1]);
      CHECK(text[0].size() > 1000);
    }
  }
}

TEST_CASE("generate: greedy text is the same with any prompt split, and ends where it should",
          "[model]") {
  const RunConfig c = preset("llama-smoke");
  const auto model = made(c.model);
  const Tokenizer bytes = Tokenizer::bytes();
  GenerateOptions o;
  o.sampling.temperature = 0;
  o.max_new_tokens = 20;
  std::vector<int64_t> all;
  const std::vector<int64_t> prompt = {72, 101, 108, 108, 111};
  generate_ids(*model, prompt, o, {}, [&](int64_t id) { return all.push_back(id), true; });
  REQUIRE(all.size() == 20);
  std::vector<int64_t> longer = prompt, rest;
  longer.insert(longer.end(), all.begin(), all.begin() + 7);
  o.max_new_tokens = 13;
  generate_ids(*model, longer, o, {}, [&](int64_t id) { return rest.push_back(id), true; });
  CHECK(std::vector<int64_t>(all.begin() + 7, all.end()) == rest);
  o.max_new_tokens = 1000;
  int64_t count = 0;
  const auto stats = generate_ids(*model, prompt, o, {}, [&](int64_t) { return ++count, true; });
  CHECK(stats.why == "context");
  CHECK(count == c.model.context - 5 + 1);
  CHECK_THROWS_WITH(generate_text(*model, bytes, "", o, [](std::string_view) {}),
                    Catch::Contains("prompt is empty"));
  CHECK_THROWS_WITH(
      generate_ids(*model, std::vector<int64_t>(65, 1), o, {}, [](int64_t) { return true; }),
      Catch::Contains("context holds 64"));
}

TEST_CASE("generate: the context is the limit, whatever the positions are", "[model][error][F26]") {
  const Position position = GENERATE(Position::learned, Position::sinusoidal, Position::rope,
                                     Position::alibi, Position::t5_bias);
  const RunConfig c = preset(position == Position::learned ? "gpt-smoke" : "llama-smoke",
                             [&](ModelConfig& m) { m.context = 32, m.position = position; });
  const auto model = made(c.model);
  GenerateOptions o;
  o.max_new_tokens = 100;
  const auto from = [&](size_t length) {
    int64_t tokens = 0;
    const std::vector<int64_t> prompt(length, 65);
    const auto stats = generate_ids(*model, prompt, o, {}, [&](int64_t) { return ++tokens, true; });
    CHECK(stats.why == "context");
    return tokens;
  };
  // The last token needs no place: it is not read.
  CHECK(from(1) == 32);
  CHECK(from(31) == 2);
  CHECK(from(32) == 1);
  for (size_t length : {33u, 100u}) {
    CHECK_THROWS_WITH(from(length), Catch::Contains("the prompt has " + std::to_string(length)) &&
                                        Catch::Contains("context holds 32"));
    const int64_t n = static_cast<int64_t>(length);
    CHECK_THROWS_WITH(model->logits(random_ids(1, n, 256, 1)), Catch::Contains("context holds 32"));
    nn::KVCache cache = model->make_cache(1, 32);
    CHECK_THROWS_AS(model->next_logits(random_ids(1, n, 256, 1), cache), Error);
  }
}

TEST_CASE("generate: an empty prompt begins from the end-of-text token, or is an error",
          "[model][error][F52]") {
  const RunConfig c = preset("llama-smoke", [](ModelConfig& m) { m.vocab = 257; });
  const auto model = made(c.model);
  GenerateOptions o;
  o.max_new_tokens = 3;
  std::string text;
  const auto emit = [&](std::string_view piece) { text += piece; };
  const auto stats = generate_text(*model, Tokenizer::bytes(true), "", o, emit);
  CHECK(stats.prompt_tokens == 1);
  CHECK(stats.new_tokens > 0);
  CHECK_THROWS_WITH(generate_text(*model, Tokenizer::bytes(), "", o, emit),
                    Catch::Contains("prompt is empty") && Catch::Contains("end-of-text"));
}

TEST_CASE("account: llama-3-8b has the published figures", "[model]") {
  const RunConfig c = preset("llama-3-8b");
  ReportOptions o;
  o.seq = 8192;
  o.train = true;
  const Report r = make_report(c.model, o);
  CHECK(r.parameters.total() == 8030261248);
  CHECK(r.model.full == Approx(4.7442e14).epsilon(1e-4));
  const double products = 6.0 * 7504658432.0 * 8192, pairs = 8192.0 * 8193 / 2;
  CHECK(r.model.full == Approx(products + 12.0 * 32 * 4096 * 8192.0 * 8192).epsilon(1e-12));
  CHECK(r.model.causal == Approx(products + 12.0 * 32 * 4096 * pairs).epsilon(1e-12));
  CHECK(r.cost.flops > r.model.causal);
}
