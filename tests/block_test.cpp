// Every choice of a block, a residual path and a head, in a model of two layers: values against
// compositions, gradients against the reference, costs against meta, decoding against the full pass.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "autograd/functional.h"
#include "autograd/proof/run_sample.h"
#include "backends/register_all.h"
#include "core/ledger.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/parameters.h"
#include "models/recompute.h"
#include "models/report.h"
#include "models/zoo.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

struct Registered {
  Registered() { register_all(); }
} const registered;

using Assignments = std::vector<std::string>;

ModelConfig with(const Assignments& assignments) {
  RunConfig c = find_preset("llama-smoke").config;
  c.model.d_model = 16, c.model.heads = 4, c.model.kv_heads = 2, c.model.d_ff = 24;
  c.model.vocab = 40, c.model.context = 16, c.model.tied_head = false;
  for (const std::string& a : assignments) apply_override(c, "model." + a);
  c.resolve_and_check("test");
  return c.model;
}

std::string refusal(const Assignments& assignments) {
  try {
    with(assignments);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

/// Every parameter normal, norms and gains included, so that no choice hides behind a 1 or a 0.
std::unique_ptr<nn::Decoder> random_model(const ModelConfig& c, DType dtype, Device device) {
  auto model = build_model(c, dtype, device);
  uint64_t stream = 1;
  for (auto& [name, t] : model->named_parameters()) {
    std::vector<double> v(static_cast<size_t>(t.numel()));
    for (size_t i = 0; i < v.size(); ++i) v[i] = 0.3 * normal_at(7, stream, i);
    ++stream;
    if (backend(device).is_meta()) continue;
    const Tensor from = to(from_host<double>(v, t.shape(), device), dtype);
    backend(device).copy(t.data(), from.data(), t.nbytes());
  }
  model->requires_grad();
  return model;
}

Tensor ids(uint64_t stream, Device device, int64_t b = 3, int64_t t = 8) {
  std::vector<int64_t> v(static_cast<size_t>(b * t));
  for (size_t i = 0; i < v.size(); ++i) v[i] = Philox::word(3, stream, i) % 40;
  return from_host<int64_t>(v, {b, t}, device);
}

struct Outcome {
  double loss = 0;
  std::vector<std::pair<std::string, std::vector<double>>> gradients;
  std::string ledger;
};

Outcome step(const ModelConfig& c, DType dtype, Device device, const std::string& again = "none") {
  const auto model = random_model(c, dtype, device);
  model->recompute = recompute_layers(again, c.layers);
  Generator streams(5);
  const Ledger ledger;
  Tape tape;
  const Tensor loss = model->loss(ids(1, device), ids(2, device), 0, &streams);
  tape.backward(loss);
  Outcome o;
  o.ledger = ledger.text();
  if (device == kMeta) return o;
  o.loss = loss.item();
  for (const auto& [name, t] : model->named_parameters()) {
    INFO(name);
    REQUIRE(t.grad().defined());
    o.gradients.emplace_back(name, to_doubles(t.grad()));
  }
  return o;
}

/// What a model may be made of: each line is one model.
const std::vector<Assignments>& choices() {
  static const std::vector<Assignments> list = {
      {"placement=post"},
      {"placement=double", "norm_gain=one_plus_gamma", "embedding_scale=4", "final_soft_cap=3"},
      {"placement=output", "norm_round_before_gain=true"},
      {"placement=none", "residual_gain=scalar", "init=fixup"},
      {"placement=none", "final_norm=on", "residual_gain=vector", "residual_gain_init=0.1"},
      {"placement=post", "final_norm=on", "embedding_norm=true", "norm=layer_norm",
       "norm_bias=true"},
      {"norm=layer_norm", "norm_gain=none"},
      {"norm=layer_norm", "norm_gain=one_plus_gamma", "norm_bias=true", "activation=squared_relu",
       "gated=false"},
      {"norm_gain=none", "fix_norm=head", "logit_scale=8", "label_smoothing=0.1"},
      {"norm=scale_norm", "fix_norm=both", "tied_head=true", "embedding_scale=4"},
      {"parallel=shared_norm"},
      {"parallel=two_norms", "residual_dropout=0.2"},
      {"parallel=shared_norm", "fused_parallel=true"},
      {"parallel=shared_norm", "fused_parallel=true", "gated=false", "activation=gelu",
       "qkv_bias=true", "mlp_bias=true", "attention_output_bias=true", "attention_dropout=0.2",
       "position=t5_bias", "residual_scale=0.5"},
      {"qk_norm=head"},
      {"qk_norm=full", "fused_qkv=false", "placement=output"},
      {"qk_norm=head", "norm=layer_norm", "norm_bias=true", "norm_gain=one_plus_gamma"},
      {"qk_norm=full", "norm=layer_norm", "norm_gain=none"},
      {"parallel=shared_norm", "placement=double"},
      {"parallel=two_norms", "placement=none"},
      {"residual_scale=0.22", "residual_scales=1,0.5"},
      {"stochastic_depth=0.6", "residual_gain=scalar", "residual_dropout=0.2"},
      {"experts=4", "expert_d_ff=10", "load_balance_loss=0.02"},
      {"experts=6", "experts_per_token=3", "router=sigmoid", "router_scale=2.5", "shared_experts=2",
       "shared_expert_gate=true", "first_expert_layer=1", "layers=3", "expert_layer_every=2",
       "load_balance_loss=0.1", "placement=double", "mlp_bias=true"},
      {"experts=4", "router_renormalise=false", "gated=false", "activation=gelu", "router_groups=2",
       "router_kept_groups=1", "experts_per_token=1"},
      {"activation=identity"},
      {"activation=sigmoid"},
      {"activation=swish", "activation_parameter=1.702", "gate_limit=1.5", "gate_offset=1"},
      {"activation=tanh", "gated=false"},
      {"activation=elu", "activation_parameter=0.5", "gated=false"},
      {"activation=selu"},
      {"activation=softplus", "fused_gate_up=false"},
  };
  return list;
}

std::string text_of(const Assignments& list) {
  std::string text;
  for (const std::string& a : list) text += (text.empty() ? "" : " ") + a;
  return text;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double size = 1e-3, error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::fabs(b[i]));
    error = std::max(error, std::fabs(a[i] - b[i]));
  }
  return error / size;
}

}  // namespace

TEST_CASE("block: every choice trains alike on the reference and the cpu", "[block]") {
  for (const Assignments& choice : choices()) {
    INFO(text_of(choice));
    const ModelConfig c = with(choice);
    const Outcome slow = step(c, DType::f64, kReference), fast = step(c, DType::f32, kCPU);
    CHECK(fast.loss == Approx(slow.loss).epsilon(2e-5));
    for (size_t i = 0; i < slow.gradients.size(); ++i) {
      INFO(slow.gradients[i].first);
      CHECK(largest_difference(fast.gradients[i].second, slow.gradients[i].second) < 2e-4);
    }
  }
}

TEST_CASE("block: the gradient of every choice is the slope of its loss", "[block]") {
  for (const Assignments& choice : choices()) {
    const ModelConfig c = with(choice);
    const Outcome at = step(c, DType::f64, kReference);
    const auto model = random_model(c, DType::f64, kReference);
    // Along a random direction in all parameters at once.
    const double h = 1e-6;
    double slope = 0;
    const auto move = [&](double by) {
      uint64_t stream = 100;
      for (auto& [name, t] : model->named_parameters()) {
        for (int64_t i = 0; i < t.numel(); ++i)
          static_cast<double*>(t.data())[i] += by * normal_at(9, stream, static_cast<uint64_t>(i));
        ++stream;
      }
    };
    uint64_t stream = 100;
    for (const auto& [name, g] : at.gradients) {
      for (size_t i = 0; i < g.size(); ++i) slope += g[i] * normal_at(9, stream, i);
      ++stream;
    }
    const auto loss = [&] {
      Generator streams(5);
      return model->loss(ids(1, kReference), ids(2, kReference), 0, &streams).item();
    };
    move(h);
    const double above = loss();
    move(-2 * h);
    const double below = loss();
    INFO(text_of(choice));
    CHECK((above - below) / (2 * h) == Approx(slope).epsilon(1e-5).margin(1e-7));
  }
}

TEST_CASE("block: every choice has the parameters, the file and the cost that it says", "[block]") {
  for (const Assignments& choice : choices()) {
    INFO(text_of(choice));
    const ModelConfig c = with(choice);
    const auto model = build_model(c, DType::f32, kMeta);
    const auto specs = parameter_specs(c);
    const auto parameters = model->named_parameters();
    REQUIRE(parameters.size() == specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      CHECK(parameters[i].first == specs[i].name);
      CHECK(parameters[i].second.shape() == Shape(std::span<const int64_t>(specs[i].shape)));
    }
    CHECK(model->parameter_count() == parameter_count(c));
    CHECK(step(c, DType::f32, kCPU).ledger == step(c, DType::f32, kMeta).ledger);
    RunConfig document;
    document.model = c;
    CHECK(run_config_from_json(to_json_text(document), "f.json").model == c);
  }
}

TEST_CASE("block: every choice computes its layers again to the same bits", "[block]") {
  for (const Assignments& choice : choices()) {
    INFO(text_of(choice));
    ModelConfig c = with(choice);
    const Outcome kept = step(c, DType::f32, kCPU), again = step(c, DType::f32, kCPU, "all");
    CHECK(kept.loss == again.loss);
    CHECK(kept.gradients == again.gradients);
  }
}

TEST_CASE("block: every choice decodes with its cache as in the full pass", "[block]") {
  for (const Assignments& choice : choices()) {
    INFO(text_of(choice));
    const auto model = random_model(with(choice), DType::f64, kReference);
    const Tensor tokens = ids(1, kReference, 2, 6);
    const auto full = to_doubles(model->logits(tokens));
    nn::KVCache cache = model->make_cache(2, 6);
    for (int64_t t = 0; t < 6; ++t) {
      const auto got = to_doubles(model->next_logits(copy(tokens.narrow(1, t, 1)), cache));
      for (size_t b = 0; b < 2; ++b) {
        for (size_t v = 0; v < 40; ++v)
          CHECK(
              got[b * 40 + v] ==
              Approx(full[(b * 6 + static_cast<size_t>(t)) * 40 + v]).epsilon(1e-9).margin(1e-10));
      }
    }
  }
}

TEST_CASE("block: with silent branches the stream's Jacobian is the identity, but for post-norm",
          "[block][L9]") {
  for (const char* placement : {"pre", "double", "output", "none", "post"}) {
    const ModelConfig c = with({std::string("placement=") + placement, "layers=6"});
    const auto model = random_model(c, DType::f32, kCPU);
    for (auto& [name, t] : model->named_parameters()) {
      const bool writes =
          name.ends_with("attention.out.weight") || name.ends_with("mlp.down.weight");
      if (writes) std::fill_n(static_cast<float*>(t.data()), t.numel(), 0.0F);
    }
    const auto random = [&](uint64_t stream) {
      std::vector<float> v(2 * 8 * 16);
      for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(normal_at(1, stream, i));
      return from_host<float>(v, {2, 8, 16}, kCPU);
    };
    Tensor x0 = random(1);
    x0.requires_grad_();
    const Tensor dy = random(2);
    const nn::PositionScheme::Pass pass = model->position.pass(0, 8);
    const Tape tape;
    Tensor x = x0;
    for (size_t i = 0; i < 6; ++i)
      x = model->blocks[i]->forward(x, model->position.of_layer(pass, static_cast<int64_t>(i)),
                                    nullptr);
    backward(x, dy);
    INFO(placement);
    const bool identity = to_host<float>(x0.grad()) == to_host<float>(dy);
    CHECK(identity == (std::string(placement) != "post"));
  }
}

TEST_CASE("block: fused parallel branches are the separate ones, in fewer products and bytes",
          "[block][L38][L39]") {
  const ModelConfig apart = with({"parallel=shared_norm", "layers=1"}),
                    fused = with({"parallel=shared_norm", "layers=1", "fused_parallel=true"});
  const auto a = random_model(apart, DType::f64, kReference),
             b = random_model(fused, DType::f64, kReference);
  std::map<std::string, Tensor> of_a, of_b;
  for (auto& [name, t] : a->named_parameters()) of_a[name] = t;
  for (auto& [name, t] : b->named_parameters()) of_b[name] = t;
  const auto put = [](const Tensor& to, const Tensor& from) {
    backend(kReference).copy(to.data(), from.data(), from.nbytes());
  };
  const int64_t attention_rows = of_a.at("blocks.0.attention.qkv.weight").size(0);
  const Tensor input = of_b.at("blocks.0.input.weight").detach();
  for (auto& [name, t] : of_b) {
    if (name == "blocks.0.input.weight") {
      put(input.narrow(0, 0, attention_rows), of_a.at("blocks.0.attention.qkv.weight"));
      put(input.narrow(0, attention_rows, input.size(0) - attention_rows),
          of_a.at("blocks.0.mlp.gate_up.weight"));
    } else {
      put(t, of_a.at(name));
    }
  }
  struct Work {
    double loss = 0, bytes = 0;
    int64_t products = 0;
  };
  const auto work = [](nn::Decoder& model) {
    Work w;
    const Ledger ledger;
    Tape tape;
    const Tensor loss = model.loss(ids(1, kReference), ids(2, kReference));
    for (const Entry& e : ledger.entries()) {
      if (!std::string(e.module).starts_with("blocks")) continue;
      w.products += std::string(e.op) == "linear.forward";
      w.bytes += e.cost.bytes_read + e.cost.bytes_written;
    }
    tape.backward(loss);
    w.loss = loss.item();
    return w;
  };
  const Work one = work(*a), other = work(*b);
  CHECK(other.loss == Approx(one.loss).epsilon(1e-12));
  CHECK(one.products == 4);
  CHECK(other.products == 3);
  // x is read once instead of twice; the sum of the branches, which read two streams and wrote one,
  // became a product that reads what the other one wrote.
  const double stream = 3 * 8 * 16 * 8;
  CHECK(one.bytes - other.bytes == 3 * stream);
  const auto all = to_doubles(of_b.at("blocks.0.input.weight").grad());
  std::vector<double> parts = to_doubles(of_a.at("blocks.0.attention.qkv.weight").grad());
  const auto rest = to_doubles(of_a.at("blocks.0.mlp.gate_up.weight").grad());
  parts.insert(parts.end(), rest.begin(), rest.end());
  CHECK(largest_difference(all, parts) < 1e-12);
  CHECK(largest_difference(to_doubles(of_b.at("embedding.weight").grad()),
                           to_doubles(of_a.at("embedding.weight").grad())) < 1e-12);
}

TEST_CASE("block: a norm of queries and keys bounds their products", "[block][L72]") {
  for (const char* width : {"head", "full"}) {
    const ModelConfig c = with({std::string("qk_norm=") + width});
    const auto model = build_model(c, DType::f64, kReference);
    initialise(*model, c, 1);  // gains of 1
    const nn::Attention& a = model->blocks[0]->attention;
    const nn::PositionScheme::Pass pass = model->position.pass(0, 8);
    std::vector<double> v(8 * 16);
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1e4 * normal_at(1, 2, i);
    const auto heads = nn::AttentionLayer::project(
        from_host<double>(v, {1, 8, 16}, kReference), a.q.weight, {}, {}, {}, {}, {},
        pass.global.table, a.qk_norm, a.attrs(), nullptr);
    const auto length = [](const Tensor& t) { return to_doubles(norm(copy(t), {2, 3})); };
    for (const double l : length(heads.q)) CHECK(l == Approx(std::sqrt(16.0)).epsilon(1e-4));
    for (const double l : length(heads.k)) CHECK(l == Approx(std::sqrt(8.0)).epsilon(1e-4));
    const double most = std::string(width) == "head" ? 4 : std::sqrt(16.0 * 8.0);
    const Tensor q = permute(heads.q, {0, 2, 1, 3}),
                 k = permute(heads.k.narrow(2, 0, 1), {0, 2, 1, 3});
    for (const double s : to_doubles(matmul(copy(q), copy(k), false, true)))
      CHECK(std::fabs(s) <= most * (1 + 1e-9));
  }
}

TEST_CASE("block: stochastic depth leaves out whole sequences, deep layers more often", "[block]") {
  const auto counted = [&](const Assignments& choice, int64_t layer) {
    ModelConfig c = with(choice);
    const auto model = random_model(c, DType::f32, kCPU);
    const nn::PositionScheme::Pass pass = model->position.pass(0, 4);
    std::vector<float> v(400 * 4 * 16, 0.5F);
    for (size_t i = 0; i < v.size(); ++i) v[i] += static_cast<float>(i % 7);
    const Tensor x = from_host<float>(v, {400, 4, 16}, kCPU);
    Generator streams(3);
    const auto y = to_host<float>(model->blocks[static_cast<size_t>(layer)]->forward(
        x, model->position.of_layer(pass, layer), &streams));
    int64_t untouched = 0;
    for (size_t b = 0; b < 400; ++b)
      untouched += std::equal(y.begin() + static_cast<std::ptrdiff_t>(b * 64),
                              y.begin() + static_cast<std::ptrdiff_t>(b * 64 + 64),
                              v.begin() + static_cast<std::ptrdiff_t>(b * 64));
    return untouched;
  };
  CHECK(counted({"stochastic_depth=0"}, 1) == 0);
  // Both branches left out: p^2, with p = 0.35 in the first of two layers and 0.7 in the second.
  CHECK(counted({"stochastic_depth=0.7"}, 0) == Approx(400 * 0.35 * 0.35).margin(30));
  CHECK(counted({"stochastic_depth=0.7"}, 1) == Approx(400 * 0.7 * 0.7).margin(40));
}

TEST_CASE("block: ReZero begins as the identity", "[block][L24]") {
  const ModelConfig c = with({"placement=none", "residual_gain=scalar"});
  const auto model = build_model(c, DType::f32, kCPU);
  initialise(*model, c, 1);
  const nn::PositionScheme::Pass pass = model->position.pass(0, 8);
  std::vector<float> v(8 * 16);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(normal_at(1, 2, i));
  const Tensor x = from_host<float>(v, {1, 8, 16}, kCPU);
  CHECK(to_host<float>(model->blocks[0]->forward(x, model->position.of_layer(pass, 0), nullptr)) ==
        v);
}

TEST_CASE("block: what does not fit together is refused with a way out", "[block][error]") {
  CHECK_THAT(refusal({"norm_bias=true"}), Contains("rms_norm has no bias"));
  CHECK_THAT(refusal({"norm=layer_norm", "norm_gain=none", "norm_bias=true"}),
             Contains("needs a gain; set norm_gain to gamma"));
  CHECK_THAT(refusal({"norm=scale_norm", "norm_gain=none"}), Contains("one number"));
  CHECK_THAT(refusal({"norm=layer_norm", "norm_round_before_gain=true"}),
             Contains("needs norm = rms_norm"));
  CHECK_THAT(refusal({"parallel=two_norms", "placement=post"}), Contains("choose placement = pre"));
  CHECK_THAT(refusal({"qk_norm=head", "norm=scale_norm"}), Contains("qk_norm needs norm"));
  CHECK_THAT(refusal({"qk_norm=full", "position=xl_relative"}), Contains("two biases"));
  CHECK_THAT(refusal({"fused_parallel=true"}), Contains("needs parallel = shared_norm"));
  const auto fused = [](const char* more) {
    return refusal({"parallel=shared_norm", "fused_parallel=true", more});
  };
  CHECK_THAT(fused("placement=double"), Contains("needs placement = pre or none"));
  CHECK_THAT(fused("residual_dropout=0.1"), Contains("one sum of both branches"));
  CHECK_THAT(fused("qkv_bias=true"), Contains("set qkv_bias and mlp_bias alike"));
  CHECK_THAT(fused("qk_norm=head"), Contains("set qk_norm to none"));
  CHECK_THAT(refusal({"shared_experts=1"}), Contains("need experts"));
  CHECK_THAT(refusal({"experts=4", "experts_per_token=5"}), Contains("k must be in 1..4"));
  CHECK_THAT(refusal({"experts=4", "shared_expert_gate=true"}), Contains("needs shared_experts"));
  CHECK_THAT(refusal({"experts=4", "first_expert_layer=2"}), Contains("below layers = 2"));
  CHECK_THAT(refusal({"experts=4", "parallel=shared_norm", "fused_parallel=true"}),
             Contains("needs a dense feed-forward layer"));
  CHECK_THAT(refusal({"residual_gain_init=1"}), Contains("needs a residual_gain"));
  CHECK_THAT(refusal({"residual_scales=1,2,3"}), Contains("3 numbers for 2 layers"));
  CHECK_THAT(refusal({"gated=false", "gate_limit=7"}), Contains("need gated = true"));
  CHECK_THAT(refusal({"activation_parameter=2"}), Contains("needs activation = swish or elu"));
  CHECK_THAT(refusal({"placement=double_norm"}), Contains("choose one of pre, post, double"));
  CHECK_THAT(refusal({"stochastic_depth=1"}), Contains("must lie between 0 and 0.99"));
}

TEST_CASE("block: the width of a gated layer keeps the parameters", "[block][L34][L35]") {
  CHECK(nn::ffn_width(4096, 4, false) == 16384);
  CHECK(nn::ffn_width(4096, 4, true) == 10923);
  CHECK(nn::ffn_width(4096, 4, true, 256) == 11008);
  CHECK(nn::ffn_width(5120, 4, true, 256) == 13824);
  CHECK(nn::ffn_width(5120, 4, true, 128) == 13696);
  CHECK(3.0 * 4096 * 11008 == Approx(2.0 * 4096 * 16384).epsilon(0.01));
  CHECK_THROWS_WITH(nn::ffn_width(0, 4, true), Contains("must be 1 or more"));
}
