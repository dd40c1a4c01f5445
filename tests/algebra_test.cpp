// The closed forms of `account --algebra` against what the run on meta counted.
#include <catch2/catch.hpp>
#include <cmath>

#include "backends/register_all.h"
#include "models/algebra.h"
#include "models/build.h"
#include "models/config_json.h"
#include "models/zoo.h"

using namespace tally;

TEST_CASE("algebra: every formula that something counts equals the count, for every preset",
          "[account]") {
  register_all();
  for (const Preset& p : presets()) {
    RunConfig c = p.config;
    c.resolve_and_check(p.name);
    if (c.model.architecture != Architecture::decoder) continue;
    for (int mode = 0; mode < 3; ++mode) {
      ReportOptions o;
      o.batch = 3;
      o.seq = 24;
      o.train = mode == 0;
      o.decode = mode == 1;
      const Report r = make_report(c.model, o);
      int checked = 0;
      for (const Formula& f : algebra(r)) {
        INFO(p.name << ", mode " << mode << ": " << f.what << " = " << f.formula << " = "
                    << f.numbers);
        CHECK(std::isfinite(f.value));
        CHECK_FALSE(f.unit.empty());
        if (!std::isfinite(f.counted) || f.what == "rule of thumb") continue;
        CHECK(f.value == Approx(f.counted).epsilon(1e-12));
        ++checked;
      }
      CHECK(checked >= 9);
    }
  }
}

namespace {

/// What a configuration may choose: each line is one model.
const std::vector<std::vector<std::string>>& overrides() {
  static const std::vector<std::vector<std::string>> list = {
      {"placement=post"},
      {"placement=double", "norm_gain=one_plus_gamma"},
      {"placement=output", "embedding_norm=true"},
      {"placement=none", "residual_gain=scalar"},
      {"placement=none", "final_norm=on", "residual_gain=vector"},
      {"placement=none", "residual_gain=scalar", "residual_gain_init=1", "scalar_biases=true"},
      {"norm=layer_norm", "norm_bias=true", "placement=double"},
      {"norm=layer_norm", "norm_gain=none"},
      {"norm=scale_norm", "placement=double"},
      {"parallel=shared_norm"},
      {"parallel=two_norms"},
      {"parallel=shared_norm", "placement=double"},
      {"parallel=shared_norm", "fused_parallel=true"},
      {"parallel=shared_norm", "fused_parallel=true", "qk_norm=head", "gated=false"},
      {"parallel=shared_norm", "fused_parallel=true", "qkv_bias=true", "mlp_bias=true"},
      {"fused_qkv=false", "fused_gate_up=false"},
      {"qk_norm=head"},
      {"qk_norm=full", "norm=layer_norm", "norm_bias=true"},
      {"qkv_bias=true", "attention_output_bias=true", "mlp_bias=true", "head_bias=true"},
      {"gated=false", "activation=gelu", "mlp_bias=true"},
      {"tied_head=true"},
      {"kv_heads=1"},
      {"head_dim=24"},
      {"experts=4"},
      {"experts=6", "experts_per_token=3", "shared_experts=2", "shared_expert_gate=true",
       "mlp_bias=true"},
      {"experts=4", "layers=5", "first_expert_layer=1", "expert_layer_every=2"},
      {"experts=4", "load_balance_loss=0.01", "router_selection_bias=true",
       "router_bias_rate=0.01"},
      {"window=5"},
      {"window=5", "attention_pattern=window,full"},
      {"window=5", "attention_global=2"},
      {"attention_pattern=strided", "attention_stride=4"},
      {"attention_pattern=fixed,full", "attention_stride=4", "attention_summary=2"},
      {"attention_pattern=fixed", "attention_stride=4", "attention_global=3"},
      {"attention_prefix=7"},
      {"attention_prefix=1"},
      {"attention_prefix=7", "window=5", "head_bias=true"},
      {"document_end=0"},
      {"attention_sink=true", "attention_gate=true"},
      {"attention_gate=true", "window=5"},
      {"attention_soft_cap=30", "final_soft_cap=30", "z_loss=1e-4", "max_z_loss=1e-4"},
      {"embedding_dropout=0.1", "attention_dropout=0.1", "residual_dropout=0.1"},
      {"stochastic_depth=0.2", "residual_scale=0.5"},
      {"fix_norm=both"},
      {"position_pattern=global,none"},
      {"rope_fraction=0.5"},
  };
  return list;
}

std::string text_of(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& a : list) text += (text.empty() ? "" : " ") + a;
  return text;
}

}  // namespace

TEST_CASE("algebra: the formulas hold for every choice of a configuration", "[account]") {
  register_all();
  for (const auto& choice : overrides()) {
    RunConfig c = find_preset("llama-smoke").config;
    c.model.tied_head = false;
    for (const std::string& a : choice) apply_override(c, "model." + a);
    c.resolve_and_check("llama-smoke");
    for (int mode = 0; mode < 3; ++mode) {
      ReportOptions o;
      o.batch = 3, o.seq = 24, o.train = mode == 0, o.decode = mode == 1;
      const Report r = make_report(c.model, o);
      int checked = 0;
      for (const Formula& f : algebra(r)) {
        INFO(text_of(choice) << ", mode " << mode << ": " << f.what << " = " << f.formula << " = "
                             << f.numbers);
        if (!std::isfinite(f.counted) || f.what == "rule of thumb") continue;
        CHECK(f.value == Approx(f.counted).epsilon(1e-12));
        ++checked;
      }
      CHECK(checked >= 8);
      // The model that is built has the parameters of the formulas.
      CHECK(build_model(c.model, DType::f32, kMeta)->parameter_count() == r.parameters.total());
    }
  }
}

TEST_CASE("algebra: the formulas hold for every position scheme", "[account]") {
  register_all();
  for (Position position : {Position::none, Position::learned, Position::rope, Position::sinusoidal,
                            Position::alibi, Position::t5_bias, Position::xl_relative}) {
    RunConfig c = find_preset("llama-smoke").config;
    c.model.position = position;
    c.resolve_and_check("llama-smoke");
    for (int mode = 0; mode < 3; ++mode) {
      ReportOptions o;
      o.batch = 3, o.seq = 24, o.train = mode == 0, o.decode = mode == 1;
      const Report r = make_report(c.model, o);
      for (const Formula& f : algebra(r)) {
        INFO("position " << static_cast<int>(position) << ", mode " << mode << ": " << f.what);
        if (std::isfinite(f.counted) && f.what != "rule of thumb")
          CHECK(f.value == Approx(f.counted).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("algebra: the lecture's figures", "[account]") {
  register_all();
  RunConfig llama = find_preset("llama-3-8b").config;
  llama.resolve_and_check("llama-3-8b");
  ReportOptions o;
  o.seq = 8192;
  o.train = true;
  const Report r = make_report(llama.model, o);
  const auto value = [&](const std::string& what) -> double {
    for (const Formula& f : algebra(r)) {
      if (f.what == what) return f.value;
    }
    FAIL("no line for " << what);
    return NAN;
  };
  CHECK(value("all") == 8030261248.0);
  CHECK(value("model FLOPs, full attention") == Approx(4.7442e14).epsilon(1e-4));
  CHECK(value("all three (L81)") == 16 * 8030261248.0);
  CHECK(value("KV cache of a token") == 2.0 * 32 * 8 * 128 * 4);
}
