// What layers of a model see: windows and patterns by layer, decoding with rings, memory, errors.
// Lecture claims L97, L98.
#include <catch2/catch.hpp>

#include "autograd/proof/run_sample.h"
#include "core/ledger.h"
#include "models/algebra.h"
#include "models/build.h"
#include "models/config_attention.h"
#include "models/report.h"
#include "tests/registered.h"
#include "tests/worse.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

using Set = std::function<void(ModelConfig&)>;
struct Choice {
  const char* name;
  Set set;
};
constexpr int64_t kWindow = 4, kTokens = 19;

const std::vector<Choice>& kinds() {
  static const std::vector<Choice> list = {
      {"full", [](ModelConfig&) {}},
      {"window", [](ModelConfig& c) { c.window = kWindow; }},
      {"window of 1", [](ModelConfig& c) { c.window = 1; }},
      {"window and full",
       [](ModelConfig& c) {
         c.window = kWindow, c.attention_pattern = {"window", "full"};
       }},
      {"strided and full",
       [](ModelConfig& c) {
         c.attention_stride = 3, c.attention_pattern = {"strided", "full"};
       }},
      {"fixed and window",
       [](ModelConfig& c) {
         c.window = kWindow, c.attention_stride = 5, c.attention_summary = 2;
         c.attention_pattern = {"fixed", "window"};
       }},
      {"window, soft cap and a scale of its own",
       [](ModelConfig& c) {
         c.window = kWindow, c.attention_soft_cap = 2, c.attention_scale = 0.5;
       }},
  };
  return list;
}
const std::vector<Choice>& positions() {
  static const std::vector<Choice> list = {
      {"none", [](ModelConfig& c) { c.position = Position::none; }},
      {"learned", [](ModelConfig& c) { c.position = Position::learned; }},
      {"sinusoidal", [](ModelConfig& c) { c.position = Position::sinusoidal; }},
      {"rope", [](ModelConfig&) {}},
      {"rope, local and none",
       [](ModelConfig& c) {
         c.position_pattern = {"local", "none"}, c.rope_local_base = 100;
       }},
      {"alibi", [](ModelConfig& c) { c.position = Position::alibi; }},
      {"t5_bias",
       [](ModelConfig& c) {
         c.position = Position::t5_bias, c.t5_buckets = 8, c.t5_max_distance = 10;
       }},
      {"xl_relative", [](ModelConfig& c) { c.position = Position::xl_relative; }},
  };
  return list;
}

ModelConfig config_of(const std::vector<Set>& sets) {
  ModelConfig c;
  c.layers = 2, c.d_model = 32, c.heads = 4, c.kv_heads = 2, c.vocab = 19, c.context = 64;
  c.init = Init::xavier;
  for (const Set& set : sets) set(c);
  c.resolve();
  c.check();
  return c;
}
std::unique_ptr<nn::Decoder> made(const ModelConfig& c, Device device = kCPU) {
  auto m = build_model(c, DType::f32, device);
  initialise(*m, c, 1);
  return m;
}
std::string error_of(const Set& set) {
  try {
    config_of({set});
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}
Tensor random_ids(int64_t b, int64_t t) {
  std::vector<int64_t> ids(static_cast<size_t>(b * t));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(Philox::word(3, 1, i) % 19);
  return from_host<int64_t>(ids, {b, t}, kCPU);
}
Tensor columns(const Tensor& ids, int64_t first, int64_t count) {
  return contiguous(ids.narrow(1, first, count));
}

// Largest difference of the logits behind token `at` of a full pass, relative to the largest.
double off_by(const Tensor& full, int64_t at, const Tensor& cached) {
  const auto want = to_doubles(contiguous(full.narrow(1, at, 1))), got = to_doubles(cached);
  double worst = 0, largest = 0;
  REQUIRE(want.size() == got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    worst = test::worse(worst, got[i], want[i]);
    largest = std::max(largest, std::fabs(want[i]));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("window: decoding equals the full pass at every position, each kind and scheme",
          "[model][L97][L98][F03][F04][F22]") {
  const Tensor ids = random_ids(2, kTokens);
  for (const Choice& kind : kinds()) {
    for (const Choice& position : positions()) {
      INFO(kind.name << ", " << position.name);
      const auto model = made(config_of({kind.set, position.set}));
      const Tensor full = model->logits(ids);
      // Prompts around the window, then several tokens at once, then one by one past 4 windows.
      for (const int64_t prompt : {int64_t{1}, kWindow - 1, kWindow, kWindow + 1, 2 * kWindow}) {
        nn::KVCache cache = model->make_cache(2, kTokens);
        CHECK(off_by(full, prompt - 1, model->next_logits(columns(ids, 0, prompt), cache)) <= 1e-5);
        int64_t at = prompt;
        for (const int64_t count : {3, 1, 2}) {
          CHECK(off_by(full, at + count - 1, model->next_logits(columns(ids, at, count), cache)) <=
                1e-5);
          at += count;
        }
        for (; at < kTokens; ++at)
          CHECK(off_by(full, at, model->next_logits(columns(ids, at, 1), cache)) <= 1e-5);
        CHECK(cache.length() == kTokens);
      }
    }
  }
}

TEST_CASE("window: a layer's cache holds exactly its window, and says when the text is too long",
          "[model][L98][F04]") {
  const ModelConfig c = config_of({[](ModelConfig& m) {
    m.window = kWindow, m.attention_pattern = {"window", "full"};
  }});
  const auto model = made(c);
  const size_t token = 2 * 2 * 8 * sizeof(float);  // keys and values of 2 heads of 8
  CHECK(model->make_cache(1, 50).nbytes() == token * (kWindow + 50));
  CHECK(model->make_cache(1, 3).nbytes() == token * (3 + 3));
  CHECK(cached_tokens(c, 50) == kWindow + 50);
  nn::KVCache cache = model->make_cache(1, 6);
  model->next_logits(random_ids(1, 5), cache);
  CHECK_THROWS_WITH(model->next_logits(random_ids(1, 2), cache),
                    Contains("kv_cache: 5 + 2 tokens do not fit the capacity of 6"));
  // The report of a decoding step counts these bytes and this work.
  ReportOptions o;
  o.batch = 1, o.seq = 50, o.decode = true;
  const Report r = make_report(c, o);
  CHECK(r.kv_cache == static_cast<double>(token) * (kWindow + 51));
}

TEST_CASE("window: account's closed forms equal what is counted", "[model][L97]") {
  for (const Choice& kind : kinds()) {
    INFO(kind.name);
    for (const bool decode : {false, true}) {
      ReportOptions o;
      o.batch = 2, o.seq = 23, o.decode = decode;
      for (const Formula& f : algebra(make_report(config_of({kind.set}), o))) {
        if (f.what.starts_with("model FLOPs")) CHECK(f.value == Approx(f.counted).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("window: one that holds the whole text changes nothing; a smaller one hides the past",
          "[model][L98]") {
  const Tensor ids = random_ids(1, kTokens);
  const auto logits = [&](const Set& set) {
    return to_doubles(made(config_of({set}))->logits(ids));
  };
  const auto full = logits([](ModelConfig&) {});
  CHECK(logits([](ModelConfig& c) { c.window = kTokens; }) == full);
  CHECK(logits([](ModelConfig& c) { c.window = kTokens - 1; }) != full);
  // Two layers of window 4 reach back 6 tokens: a change before that is not seen; a full layer sees.
  const auto last_of_changed = [&](const Set& set) {
    const auto model = made(config_of({set}));
    auto other = to_host<int64_t>(ids);
    other[kTokens - 1 - 7] = (other[kTokens - 1 - 7] + 1) % 19;
    const Tensor a = model->logits(ids),
                 b = model->logits(from_host<int64_t>(other, ids.shape(), kCPU));
    const auto last = [](const Tensor& y) {
      return to_doubles(contiguous(y.narrow(1, kTokens - 1, 1)));
    };
    return last(a) == last(b);
  };
  CHECK(last_of_changed([](ModelConfig& c) { c.window = 4; }));
  CHECK_FALSE(last_of_changed([](ModelConfig& c) {
    c.window = 4, c.attention_pattern = {"window", "full"};
  }));
}

TEST_CASE("window: fields that would do nothing are refused", "[model][error]") {
  CHECK_THAT(error_of([](ModelConfig& c) { c.attention_pattern = {"windw"}; }),
             Contains("\"windw\" is not known") && Contains("window"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.attention_pattern = {"window"}; }),
             Contains("window = 0 must be above 0"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.window = 4, c.attention_pattern = {"full"}; }),
             Contains("window = 4 needs a layer"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.attention_pattern = {"strided"}; }),
             Contains("attention_stride = 0 must be above 0"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.attention_stride = 4; }),
             Contains("needs a layer that is strided or fixed"));
  CHECK_THAT(error_of([](ModelConfig& c) {
               c.attention_stride = 4, c.attention_summary = 5, c.attention_pattern = {"fixed"};
             }),
             Contains("must not exceed attention_stride = 4"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.attention_summary = 2; }),
             Contains("attention_summary = 2 needs a layer that is fixed"));
  CHECK_THAT(error_of([](ModelConfig& c) { c.window = -1; }), Contains("window must lie between"));
}
