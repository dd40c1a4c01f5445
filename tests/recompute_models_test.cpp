// Layers that are told more than the stream are computed again as well: those of encoders and
// encoder-decoders, those that share keys and values, and those with an embedding of their own.
#include "models/architecture.h"
#include "models/build.h"
#include "models/recompute.h"
#include "models/report.h"
#include "models/training_step.h"
#include "models/zoo.h"
#include "tests/decoder_checks.h"
#include "tests/layer_values.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

ModelConfig dropping(ModelConfig c) {
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0.1;
  return checked(c);
}

// The last two of four layers take keys and values of the first two; each has an embedding.
ModelConfig sharing() {
  ModelConfig c;
  c.name = "sharing";
  c.layers = 4, c.d_model = 12, c.heads = 2, c.kv_heads = 1, c.head_dim = 4, c.d_ff = 20;
  c.vocab = 200, c.context = 16, c.attention = AttentionKind::shared;
  c.window = 5, c.attention_pattern = {"window", "full"}, c.position_pattern = {"local", "global"};
  c.global_head_dim = 6, c.shared_kv_layers = 2;
  c.value_norm = true, c.qk_norm = QKNorm::head;
  c.layer_input_dim = 3, c.layer_scale = true, c.stochastic_depth = 0.3;
  return c;
}

// Without positions and norms a layer's keys are its values: one tensor is handed on twice.
ModelConfig keys_for_values() {
  ModelConfig c = sharing();
  c.name = "keys for values";
  c.window = 0, c.attention_pattern = c.position_pattern = {};
  c.position = Position::none, c.qk_norm = QKNorm::none, c.value_norm = false;
  c.keys_as_values = true, c.shared_kv_layers = 3;
  return c;
}

std::vector<ModelConfig> models() {
  std::vector<ModelConfig> all;
  for (const char* preset : {"bert-smoke", "t5-smoke", "t5-v1.1-smoke", "transformer-smoke"})
    all.push_back(dropping(find_preset(preset).config.model));
  all.push_back(dropping(sharing()));
  all.push_back(dropping(keys_for_values()));
  return all;
}

struct Step {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
  uint64_t position = 0;
  std::string ledger;
  size_t saved = 0;
  std::vector<LedgerTotal> phases;
};

Tensor drawn(uint64_t stream, int64_t bound, int64_t tokens, Device device) {
  if (backend(device).is_meta()) return empty({2, tokens}, DType::i64, device);
  return make_input(indices({2, tokens}, stream, bound), DType::i64, device);
}

// Two accumulated passes; an encoder sees padding.
Step step(const ModelConfig& c, const std::string& recompute, Device device, DType dtype) {
  const auto model = build_language_model(c, dtype, device);
  initialise(*model, c, 1);
  model->requires_grad();
  model->set_recompute(recompute_layers(recompute, c.all_layers()));
  const bool reads = c.architecture == Architecture::encoder_decoder;
  Generator dropout(5);
  Step s;
  const Ledger ledger;
  for (uint64_t pass = 0; pass < 2; ++pass) {
    nn::ModelBatch batch{drawn(10 * pass + 1, c.vocab, 14, device),
                         drawn(10 * pass + 2, c.vocab, 14, device),
                         {},
                         {}};
    const int64_t read = reads ? 11 : 14;
    if (reads) batch.source = drawn(10 * pass + 3, c.vocab, read, device);
    if (c.architecture != Architecture::decoder && !backend(device).is_meta()) {
      std::vector<uint8_t> seen(static_cast<size_t>(2 * read), 1);
      seen.back() = 0;
      batch.mask = from_host<uint8_t>(seen, {2, read}, device);
    } else if (c.architecture != Architecture::decoder) {
      batch.mask = empty({2, read}, DType::u8, device);
    }
    const size_t before = backend(device).memory().live;
    Tape tape;
    Tensor stats;
    const Tensor loss = model->batch_loss(batch, 56, &dropout, &stats);
    s.saved = backend(device).memory().live - before;
    if (device != kMeta) s.loss += loss.item();
    tape.backward(loss);
  }
  s.position = dropout.position();
  s.ledger = ledger.text();
  s.phases = ledger.totals(Ledger::By::phase);
  for (const auto& [name, t] : model->named_parameters()) {
    INFO(name);
    REQUIRE(t.grad().defined());
    if (device != kMeta) s.gradients.push_back(to_doubles(t.grad()));
  }
  return s;
}

double flops_of(const Step& s, const std::string& phase) {
  for (const LedgerTotal& t : s.phases) {
    if (t.key == phase) return t.cost.flops;
  }
  return 0;
}

}  // namespace

TEST_CASE_METHOD(Setup, "recompute: every model keeps loss, gradients and random streams",
                 "[recompute]") {
  for (const ModelConfig& c : models()) {
    for (const auto& [device, dtype] :
         {std::pair{kReference, DType::f64}, {kReference, DType::f32}, {kCPU, DType::f32}}) {
      const Step want = step(c, "none", device, dtype);
      for (const char* choice : {"all", "1", "0,2", "1-3"}) {
        if (choice[0] != 'a' && c.all_layers() < 4) continue;
        INFO(c.name << ", " << choice << " on " << to_text(device) << " in " << to_text(dtype));
        const Step got = step(c, choice, device, dtype);
        CHECK(got.loss == want.loss);
        CHECK(got.gradients == want.gradients);
        CHECK(got.position == want.position);
        CHECK(got.saved < want.saved);
      }
    }
  }
}

TEST_CASE_METHOD(Setup, "recompute: meta lists the calls of every model and its bytes",
                 "[recompute]") {
  for (const ModelConfig& c : models()) {
    INFO(c.name);
    const Step plain = step(c, "none", kMeta, DType::f32),
               again = step(c, "all", kMeta, DType::f32), real = step(c, "all", kCPU, DType::f32);
    CHECK(real.ledger == again.ledger);
    CHECK(real.saved == again.saved);
    CHECK(again.saved < plain.saved);
    CHECK(flops_of(plain, "recompute") == 0);
    CHECK(flops_of(again, "recompute") > 0);
    CHECK(flops_of(again, "backward") == flops_of(plain, "backward"));
    const bool reads = c.architecture == Architecture::encoder_decoder;
    CHECK_THAT(again.ledger,
               Contains(reads ? "recompute  decoder.layers[0].cross_attention" : "recompute"));
  }
}

TEST_CASE_METHOD(Setup, "recompute: layers are numbered from the encoder on", "[recompute]") {
  const ModelConfig c = dropping(find_preset("t5-smoke").config.model);
  const std::string first = step(c, "0", kMeta, DType::f32).ledger,
                    behind = step(c, std::to_string(c.encoder_layers), kMeta, DType::f32).ledger;
  CHECK_THAT(first, Contains("recompute  encoder.layers[0]"));
  CHECK_THAT(first, !Contains("recompute  decoder"));
  CHECK_THAT(behind, Contains("recompute  decoder.layers[0]"));
  CHECK_THAT(behind, !Contains("recompute  encoder"));
}

TEST_CASE_METHOD(Setup, "recompute: account tells what it saves and chooses the fewest layers",
                 "[recompute]") {
  for (const ModelConfig& c : models()) {
    INFO(c.name);
    ReportOptions o;
    o.batch = 4, o.seq = 14, o.train = true, o.accumulation = 2;
    const Report plain = make_report(c, o);
    o.recompute = "all";
    const Report again = make_report(c, o);
    CHECK(again.saved < plain.saved);
    CHECK(again.model.full == plain.model.full);
    CHECK(again.cost.flops > plain.cost.flops);
    CHECK(choose_recompute(c, o, plain.peak).layers == 0);
    if (again.peak >= plain.peak) continue;  // small ones peak in the update
    const RecomputeChoice chosen = choose_recompute(c, o, plain.peak - 1);
    CHECK(chosen.fits);
    CHECK(chosen.layers >= 1);
  }
}
