// What the tokens of an encoder see: windows to both sides, global tokens, their own document.
#include "models/architecture.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/recompute.h"
#include "models/report.h"
#include "tests/decoder_checks.h"
#include "tests/layer_values.h"
#include "tests/message_of.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kLength = 9, kEnd = 7;
using Ids = std::vector<int64_t>;

ModelConfig small_encoder(const std::function<void(ModelConfig&)>& change = {}) {
  ModelConfig c;
  c.name = "encoder";
  c.architecture = Architecture::encoder;
  c.layers = 1, c.d_model = 12, c.heads = 3, c.d_ff = 20, c.vocab = 17, c.context = kLength;
  c.norm = Norm::layer_norm, c.norm_bias = true, c.placement = Placement::post;
  c.tied_head = c.head_bias = c.qkv_bias = c.mlp_bias = true;
  c.gated = false, c.activation = Activation::gelu, c.position = Position::none;
  c.init_std = 0.4;
  if (change) change(c);
  return checked(c);
}

std::unique_ptr<nn::LanguageModel> made_encoder(const ModelConfig& c, Device device) {
  auto model = build_language_model(c, DType::f64, device);
  initialise(*model, c, 1);
  return model;
}

// Logits by token.
std::vector<Numbers> logits_of(nn::LanguageModel& model, const Ids& ids, const Tensor& mask = {}) {
  const Tensor row = from_host<int64_t>(ids, {1, static_cast<int64_t>(ids.size())}, model.device());
  const Numbers all = numbers(model.batch_logits({row, {}, {}, mask}));
  const auto vocab = static_cast<size_t>(model.vocab());
  std::vector<Numbers> rows;
  for (size_t t = 0; t < ids.size(); ++t) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(t * vocab);
    rows.emplace_back(first, first + static_cast<std::ptrdiff_t>(vocab));
  }
  return rows;
}

// Which tokens change when the token at `from` becomes another.
std::vector<bool> reached(nn::LanguageModel& model, Ids ids, size_t from) {
  const auto before = logits_of(model, ids);
  ids[from] = ids[from] == 3 ? 4 : 3;
  const auto after = logits_of(model, ids);
  std::vector<bool> found(ids.size());
  for (size_t t = 0; t < ids.size(); ++t) found[t] = before[t] != after[t];
  return found;
}

const Ids& some_ids() {
  static const Ids ids{1, 5, 2, 9, 11, 3, 14, 6, 8};
  return ids;
}

}  // namespace

TEST_CASE_METHOD(Setup, "encoder: a window reaches as far ahead as behind", "[model][L97]") {
  for (Device device : {kReference, kCPU}) {
    for (const int64_t window : {1, 3}) {
      const auto model =
          made_encoder(small_encoder([&](ModelConfig& c) { c.window = window; }), device);
      for (size_t from = 0; from < size_t{kLength}; ++from) {
        const auto found = reached(*model, some_ids(), from);
        for (size_t t = 0; t < found.size(); ++t) {
          INFO("window " << window << ", " << from << " to " << t);
          CHECK(found[t] == (std::max(t, from) - std::min(t, from) < size_t(window)));
        }
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "encoder: global tokens see all and are seen by all", "[model][L97]") {
  const auto model = made_encoder(
      small_encoder([](ModelConfig& c) { c.window = 2, c.attention_global = 1; }), kCPU);
  CHECK(reached(*model, some_ids(), 0) == std::vector<bool>(kLength, true));
  const auto found = reached(*model, some_ids(), 6);
  CHECK(found == std::vector<bool>{true, false, false, false, false, true, true, true, false});
}

TEST_CASE_METHOD(Setup, "encoder: layers take the kinds of a pattern in turn", "[model]") {
  const auto all = [](std::vector<std::string> pattern) {
    const auto model = made_encoder(small_encoder([&](ModelConfig& c) {
                                      c.layers = 2, c.window = 2, c.attention_pattern = pattern;
                                    }),
                                    kCPU);
    const auto found = reached(*model, some_ids(), 0);
    return std::count(found.begin(), found.end(), true);
  };
  CHECK(all({"window"}) == 3);
  CHECK(all({"window", "full"}) == kLength);
}

TEST_CASE_METHOD(Setup, "encoder: packed documents are as they would be alone", "[model][L97]") {
  for (const Position position : {Position::none, Position::t5_bias}) {
    for (const int64_t window : {0, 2}) {
      for (Device device : {kReference, kCPU}) {
        const auto model = made_encoder(small_encoder([&](ModelConfig& c) {
                                          c.document_end = kEnd, c.window = window;
                                          c.position = position;
                                          if (position == Position::t5_bias)
                                            c.t5_buckets = 8, c.t5_max_distance = 6;
                                        }),
                                        device);
        const Ids first{1, 5, 2, kEnd}, second{9, 11, 3, 14, 6};
        Ids packed = first;
        packed.insert(packed.end(), second.begin(), second.end());
        const auto both = logits_of(*model, packed), one = logits_of(*model, first),
                   two = logits_of(*model, second);
        for (size_t t = 0; t < packed.size(); ++t) {
          const Numbers& alone = t < 4 ? one[t] : two[t - 4];
          for (size_t i = 0; i < alone.size(); ++i)
            CHECK(std::fabs(both[t][i] - alone[i]) <= 1e-13 * (1 + std::fabs(alone[i])));
        }
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "encoder: documents and padding hide together, and with recompute alike",
                 "[model][recompute]") {
  const ModelConfig c = small_encoder([](ModelConfig& m) {
    m.document_end = kEnd, m.window = 3, m.attention_soft_cap = 2, m.layers = 2;
    m.attention_dropout = m.residual_dropout = 0.1;
  });
  Ids ids = some_ids();
  ids[3] = kEnd;
  std::vector<uint8_t> seen(kLength, 1);
  seen[8] = 0;
  Numbers gradients[2];
  for (const bool again : {false, true}) {
    const auto model = made_encoder(c, kCPU);
    model->requires_grad();
    model->set_recompute(recompute_layers(again ? "all" : "none", c.all_layers()));
    const Tensor row = from_host<int64_t>(ids, {1, kLength}, kCPU),
                 mask = from_host<uint8_t>(seen, {1, kLength}, kCPU);
    Generator dropout(3);
    Tensor stats;
    Tape tape;
    tape.backward(model->batch_loss({row, row, {}, mask}, 0, &dropout, &stats));
    for (const auto& [name, p] : model->named_parameters()) {
      const Numbers g = numbers(p.grad());
      gradients[again].insert(gradients[again].end(), g.begin(), g.end());
    }
    // With the padding unseen the last document ends before it.
    Ids other = ids;
    other[8] = 1;
    const auto here = logits_of(*model, ids, mask), there = logits_of(*model, other, mask);
    for (size_t t = 0; t < 8; ++t) CHECK(here[t] == there[t]);
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE_METHOD(Setup, "encoder: a window's work grows with the window, not the text",
                 "[account][L97]") {
  const auto scores = [](int64_t tokens, int64_t window) {
    ReportOptions o;
    o.batch = 1, o.seq = tokens;
    const Report r =
        make_report(small_encoder([&](ModelConfig& c) { c.context = 512, c.window = window; }), o);
    double flops = 0;
    for (const LedgerTotal& t : r.by_op) flops += t.key == "attention.forward" ? t.cost.flops : 0;
    return flops;
  };
  CHECK(scores(512, 0) / scores(256, 0) == Approx(4).epsilon(0.02));
  CHECK(scores(512, 8) / scores(256, 8) == Approx(2).epsilon(0.02));
  CHECK(scores(512, 8) < scores(512, 0) / 25);
}

TEST_CASE_METHOD(Setup, "encoder: every parameter passes tally gradcheck under its masks",
                 "[model]") {
  check_differences(small_encoder([](ModelConfig& c) {
    c.document_end = kEnd, c.window = 2, c.attention_global = 1, c.attention_soft_cap = 3;
  }));
}

TEST_CASE("encoder: masks that do not fit are refused by name", "[config][error]") {
  const auto refusal = [](std::initializer_list<const char*> assignments) {
    RunConfig run{small_encoder(), {}};
    return message_of([&] {
      for (const char* assignment : assignments) apply_override(run, assignment);
      run.resolve_and_check("f");
    });
  };
  CHECK(refusal({"model.window=4", "model.document_end=7"}) == "accepted");
  CHECK_THAT(refusal({"model.attention_pattern=[\"strided\"]", "model.attention_stride=3"}),
             Contains("strided and fixed layers look back alone"));
  CHECK_THAT(refusal({"model.document_end=17"}), Contains("must be a token, 0..16, or -1"));
  CHECK_THAT(refusal({"model.attention_global=2"}), Contains("needs layers that do not see all"));
  CHECK_THAT(refusal({"model.attention_prefix=2"}),
             Contains("attention_prefix has no meaning for architecture = encoder"));
}
