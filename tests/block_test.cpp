// What single choices of a block are for: the lecture's properties, fused against separate, refusals.
#include <map>

#include "models/parameters.h"
#include "models/report.h"
#include "tests/block_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

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
  const std::string qk = GENERATE("none", "head", "full", "heads");
  const ModelConfig apart = with({"parallel=shared_norm", "layers=1", "qk_norm=" + qk}),
                    fused = with({"parallel=shared_norm", "layers=1", "qk_norm=" + qk,
                                  "fused_parallel=true"});
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
  for (const auto& [name, t] : of_b) {
    if (name == "blocks.0.input.weight") continue;
    CHECK(largest_difference(to_doubles(t.grad()), to_doubles(of_a.at(name).grad())) < 1e-12);
  }
}

TEST_CASE("block: allocates what it uses and nothing beside", "[block][memory]") {
  register_all();
  for (const Assignments& choice : {Assignments{}, Assignments{"experts=4"},
                                    Assignments{"parallel=shared_norm", "fused_parallel=true"},
                                    Assignments{"fused_qkv=false", "scalar_biases=true"}}) {
    const ModelConfig c = with(choice);
    const size_t before = backend(kMeta).memory().live;
    backend(kMeta).reset_peak();
    const auto model = build_model(c, DType::f32, kMeta);
    const size_t weights = 4 * static_cast<size_t>(parameter_count(c));
    CHECK(backend(kMeta).memory().live - before >= weights);
    CHECK(backend(kMeta).memory().peak == backend(kMeta).memory().live);  // nothing came and went
  }
}

TEST_CASE("block: softmax_off_by_one is a sink that stays 0", "[block]") {
  register_all();
  const auto one = random_model(with({"softmax_off_by_one=true"}), DType::f64, kCPU),
             sink = random_model(with({"attention_sink=true"}), DType::f64, kCPU);
  const auto ours = one->named_parameters();
  for (auto& [name, t] : sink->named_parameters()) {
    const auto same = std::ranges::find(ours, name, [](const auto& p) { return p.first; });
    if (same == ours.end())
      backend(kCPU).zero(t.data(), t.nbytes());
    else
      backend(kCPU).copy(t.data(), same->second.data(), t.nbytes());
  }
  CHECK(to_doubles(one->logits(ids(1, kCPU))) == to_doubles(sink->logits(ids(1, kCPU))));
  CHECK(refusal({"softmax_off_by_one=true", "attention_sink=true"}).find("choose one") !=
        std::string::npos);
}

TEST_CASE("block: a learned activation begins where its paper says", "[block]") {
  register_all();
  const auto silu = with({}), swish = with({"activation=learned_swish"}),
             xielu = with({"activation=xielu", "gated=false"});
  CHECK(parameter_count(swish) == parameter_count(silu) + swish.layers);
  const auto model = build_model(xielu, DType::f64, kCPU);
  initialise(*model, xielu, 1);
  int found = 0;
  for (const auto& [name, t] : model->named_parameters()) {
    if (!name.ends_with("alpha_p") && !name.ends_with("alpha_n")) continue;
    const double curvature = std::log1p(std::exp(t.item())) + (name.ends_with("n") ? 0.5 : 0);
    CHECK(curvature == Approx(0.8).epsilon(1e-12));
    ++found;
  }
  CHECK(found == 2 * xielu.layers);
  CHECK(refusal({"activation=xielu", "experts=4"}).find("dense layers alone") != std::string::npos);
}

TEST_CASE("block: Fixup begins as the identity, with branches that learn", "[block][L24]") {
  const ModelConfig c = with({"placement=none", "residual_gain=scalar", "residual_gain_init=1",
                              "init=fixup", "scalar_biases=true"});
  CHECK(parameter_counts(c).shifts == 5 * c.layers + 1);
  const auto model = build_model(c, DType::f64, kReference);
  initialise(*model, c, 1);
  std::map<std::string, Tensor> all;
  for (auto& [name, t] : model->named_parameters()) all[name] = t;
  for (const char* shift :
       {"blocks.0.attention_shift", "blocks.0.attention.shift", "blocks.1.mlp_shift",
        "blocks.1.mlp.activation_shift", "blocks.1.mlp.shift", "head.shift"}) {
    INFO(shift);
    REQUIRE(all.count(shift) == 1);
    CHECK(all.at(shift).item() == 0);
  }
  CHECK(all.at("blocks.0.mlp_gain").item() == 1);
  const nn::PositionScheme::Pass pass = model->position.pass(0, 8);
  std::vector<double> v(8 * 16);
  for (size_t i = 0; i < v.size(); ++i) v[i] = normal_at(1, 2, i);
  const Tensor x = from_host<double>(v, {1, 8, 16}, kReference);
  CHECK(to_doubles(model->blocks[0]->forward(x, model->position.of_layer(pass, 0), nullptr)) == v);
  // The last matrices are 0 and the head is: they alone have a gradient at first.
  model->requires_grad();
  Tape tape;
  tape.backward(model->loss(ids(1, kReference), ids(2, kReference)));
  const auto size = [&](const char* name) {
    double sum = 0;
    for (const double g : to_doubles(all.at(name).grad())) sum += std::fabs(g);
    return sum;
  };
  CHECK(size("head.weight") > 0);
  CHECK(size("blocks.0.attention.out.weight") == 0);  // behind a head of 0
  // One step of the head opens the way for the branches, another one for their first matrices.
  for (auto& [name, t] : all) {
    if (name == "head.weight" || name.ends_with("out.weight") || name.ends_with("down.weight"))
      for (int64_t i = 0; i < t.numel(); ++i)
        static_cast<double*>(t.data())[i] += 0.1 * normal_at(5, 6, static_cast<uint64_t>(i));
  }
  model->zero_grad();
  Tape second;
  second.backward(model->loss(ids(1, kReference), ids(2, kReference)));
  for (const auto& [name, t] : all) {
    INFO(name);
    CHECK(size(name.c_str()) > 0);
  }
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
  CHECK_THAT(fused("position=xl_relative"), Contains("no product by distance"));
  CHECK_THAT(fused("scalar_biases=true"), Contains("set scalar_biases to false"));
  CHECK_THAT(refusal({"scalar_biases=true", "experts=4"}), Contains("set experts to 0"));
  CHECK_THAT(refusal({"router_selection_bias=true"}), Contains("needs experts"));
  CHECK_THAT(refusal({"experts=4", "router_bias_rate=0.1"}),
             Contains("router_bias_rate = 0.1 needs router_selection_bias"));
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
