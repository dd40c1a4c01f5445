// Every choice of a block, a residual path and a head: gradients against the reference and the loss,
// costs against meta, recomputation and decoding against the full pass.
#include "models/parameters.h"
#include "tests/block_helpers.h"

using namespace tally;
using namespace tally::test;

namespace {

/// What a model may be made of: each line is one model.
const std::vector<Assignments>& choices() {
  static const std::vector<Assignments> list = {
      {"placement=post"},
      {"placement=double", "norm_gain=one_plus_gamma", "embedding_scale=4", "final_soft_cap=3"},
      {"placement=output", "norm_round_before_gain=true"},
      {"placement=none", "residual_gain=scalar", "init=fixup"},
      {"placement=none", "residual_gain=scalar", "residual_gain_init=1", "init=fixup",
       "scalar_biases=true"},
      {"scalar_biases=true", "fused_gate_up=false", "parallel=two_norms", "position=xl_relative"},
      {"scalar_biases=true", "gated=false", "activation=gelu", "attention_gate=true",
       "placement=post", "residual_dropout=0.2"},
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
      {"parallel=shared_norm", "fused_parallel=true", "qk_norm=head"},
      {"parallel=shared_norm", "fused_parallel=true", "qk_norm=full", "norm=layer_norm",
       "norm_bias=true", "window=3"},
      {"activation=learned_swish"},
      {"activation=learned_swish", "fused_gate_up=false", "mlp_bias=true", "placement=post"},
      {"activation=xielu", "gated=false"},
      {"activation=xielu", "parallel=shared_norm"},
      {"softmax_off_by_one=true"},
      {"softmax_off_by_one=true", "window=3", "qk_norm=head", "fused_qkv=false"},
      {"max_z_loss=0.05", "final_soft_cap=3"},
      {"max_z_loss=0.05", "z_loss=0.01", "head_bias=true", "label_smoothing=0.1"},
      {"window=3", "attention_global=2"},
      {"attention_prefix=3"},
      {"attention_prefix=3", "attention_pattern=strided", "attention_stride=2", "head_bias=true",
       "parallel=shared_norm", "fused_parallel=true", "document_end=7"},
      {"document_end=7", "position=t5_bias", "scalar_biases=true"},
      {"document_end=7", "position=xl_relative", "window=3"},
      {"document_end=7", "position=alibi", "position_pattern=none,global"},
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
      {"experts=4", "router=sigmoid", "router_selection_bias=true", "router_bias_rate=0.01"},
      {"experts=4", "router_selection_bias=true", "shared_experts=1"},
      {"experts=4", "router_norm=true", "router_expert_scale=true", "router_bias=true"},
      {"experts=4", "expert_d_ff=10", "dense_branch=true", "placement=double", "router_norm=true",
       "load_balance_loss=0.02"},
      {"experts=4", "dense_branch=true", "placement=double", "first_expert_layer=1"},
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
    const ModelConfig c = with(choice);
    const auto model = random_model(c, DType::f64, kReference);
    const Tensor tokens = ids(1, kReference, 2, 6);
    const auto full = to_doubles(model->logits(tokens));
    nn::KVCache cache = model->make_cache(2, 6);
    for (int64_t t = 0; t < 6; ++t) {
      const auto got = to_doubles(model->next_logits(copy(tokens.narrow(1, t, 1)), cache));
      if (t + 1 < c.attention_prefix) continue;  // in the full pass it sees what has not come yet
      for (size_t b = 0; b < 2; ++b) {
        for (size_t v = 0; v < 40; ++v)
          CHECK(
              got[b * 40 + v] ==
              Approx(full[(b * 6 + static_cast<size_t>(t)) * 40 + v]).epsilon(1e-9).margin(1e-10));
      }
    }
  }
}
