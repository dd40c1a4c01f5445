// Recorded cases of rotary embedding, tables of positions and losses, by the name that the record
// uses.
#include <cmath>
#include <map>

#include "autograd/functional.h"
#include "cli/verify_ops.h"
#include "core/ops/position.h"

namespace tally::cli {
namespace {

using C = OpCase;
using ops::RotaryPairs;

OpOutputs only(const Tensor& y) { return {{"y", y}}; }
Tensor in_type(const C& c, const std::vector<double>& v, const Shape& shape) {
  return to(from_host<double>(std::span<const double>(v), shape, c.device), c.dtype);
}

RopeScaling scaling_of(const C& c) {
  using K = RopeScalingKind;
  static const std::map<std::string, K> kinds = {
      {"default", K::none},      {"linear", K::linear},
      {"ntk", K::ntk},           {"dynamic", K::dynamic_ntk},
      {"yarn", K::yarn},         {"llama3", K::llama3},
      {"longrope", K::longrope}, {"proportional", K::proportional}};
  RopeScaling s;
  if (!c.has("rope_type")) return s;
  const auto kind = kinds.find(c.text("rope_type"));
  check(kind != kinds.end(), "rope_type \"", c.text("rope_type"), "\" is not known");
  s.kind = kind->second;
  const auto read = [&](const char* name, double& to) {
    if (c.has(name)) to = c.number(name);
  };
  read("factor", s.factor);
  read("low_freq_factor", s.low_frequency);
  read("high_freq_factor", s.high_frequency);
  read("beta_fast", s.beta_fast);
  read("beta_slow", s.beta_slow);
  read("mscale", s.mscale);
  read("mscale_all_dim", s.mscale_all_dim);
  read("partial_rotary_factor", s.fraction);
  if (c.has("truncate")) s.truncate = c.flag("truncate");
  if (s.kind == K::dynamic_ntk) s.original_context = c.integer("max_position_embeddings");
  if (c.has("original_max_position_embeddings"))
    s.original_context = c.integer("original_max_position_embeddings");
  if (s.kind == K::longrope) {
    s.factor = c.number("max_position_embeddings") / c.number("original_max_position_embeddings");
    s.short_factors = c.attributes["short_factor"].get<std::vector<double>>();
    s.long_factors = c.attributes["long_factor"].get<std::vector<double>>();
  }
  return s;
}
RopeTurns turns_of(const C& c, int64_t dim) {
  const RopeScaling s = scaling_of(c);
  RopeTurns turns =
      rope_turns(dim, c.number("theta"), s, c.has("seq_len") ? c.integer("seq_len") : 0);
  const auto agree = [&](const char* name, double ours) {
    check(!c.has(name) || std::fabs(ours - c.number(name)) <= 1e-12 * std::fabs(ours), name, " is ",
          ours, " here and not as recorded");
  };
  agree("attention_factor", turns.attention_factor);
  agree("softmax_scale_multiplier", rope_softmax_scale(s));
  return turns;
}
OpOutputs inverse_frequencies(const C& c) {
  const auto f = turns_of(c, c.integer("dim")).frequencies;
  return only(in_type(c, f, {static_cast<int64_t>(f.size())}));
}
template <RotaryPairs pairs>
OpOutputs rope_case(const C& c) {
  const int64_t offset = c.has("offset") ? c.integer("offset") : 0;
  const Tensor x = transpose(c.in("x"), 1, 2);
  const Tensor table =
      rope_table(RopeRows{0, offset + 64}, turns_of(c, c.integer("rotary_dim")), c.dtype, c.device);
  return only(transpose(rope(x, table, {pairs, offset}, c.maybe("positions")), 1, 2));
}
OpOutputs rope_permute(const C& c) {
  const std::vector<int64_t> head = half_split_rows(c.integer("head_dim"));
  std::vector<int64_t> rows;
  for (int h = 0; h < c.integer("heads"); ++h) {
    for (int64_t r : head) rows.push_back(h * c.integer("head_dim") + r);
  }
  const int64_t n = static_cast<int64_t>(rows.size());
  return only(index_select(c.in("w"),
                           from_host<int64_t>(std::span<const int64_t>(rows), {n}, c.device), 0));
}

template <Sinusoid order>
OpOutputs sinusoidal(const C& c) {
  return only(sinusoidal_table(c.integer("positions"), c.integer("d"), order, c.dtype, c.device));
}
OpOutputs slopes(const C& c) {
  return only(in_type(c, alibi_slopes(c.integer("heads")), {c.integer("heads")}));
}
OpOutputs alibi_bias(const C& c) {
  const int64_t n = c.integer("length");
  std::vector<double> bias;
  for (double slope : alibi_slopes(c.integer("heads"))) {
    for (int64_t i = 0; i < n * n; ++i) bias.push_back(-slope * static_cast<double>(i / n - i % n));
  }
  return only(in_type(c, bias, {c.integer("heads"), n, n}));
}
int64_t bucket(const C& c, int64_t relative) {
  return t5_bucket(relative, c.flag("bidirectional"), c.integer("num_buckets"),
                   c.integer("max_distance"));
}
OpOutputs t5_buckets(const C& c) {
  std::vector<int64_t> out;
  for (int64_t r : to_host<int64_t>(c.in("relative"))) out.push_back(bucket(c, r));
  return only(
      from_host<int64_t>(std::span<const int64_t>(out), c.in("relative").shape(), c.device));
}
OpOutputs t5_bias(const C& c) {
  return only(relative_bias(c.in("table"), c.integer("tq"), c.integer("tk"),
                            c.flag("bidirectional"), c.integer("max_distance")));
}

// Losses

ops::LossOptions options_of(const C& c) {
  ops::LossOptions o;
  if (c.has("ignore_index")) o.ignore_index = c.integer("ignore_index");
  if (c.has("label_smoothing")) o.label_smoothing = c.number("label_smoothing");
  if (c.has("cap")) o.soft_cap = c.number("cap");
  const std::string reduction = c.has("reduction") ? c.text("reduction") : "mean";
  if (reduction == "sum") o.reduction = ops::Reduction::sum;
  if (reduction == "none") o.reduction = ops::Reduction::none;
  return o;
}
OpOutputs cross_entropy_case(const C& c) {
  if (!c.maybe("labels").defined())
    return only(cross_entropy(c.in("x"), c.in("target"), options_of(c)));
  const int64_t t = c.in("x").size(1) - 1;  // position t predicts label t + 1
  return only(cross_entropy(contiguous(narrow(c.in("x"), 1, 0, t)), narrow(c.in("labels"), 1, 1, t),
                            options_of(c)));
}
OpOutputs fused_cross_entropy(const C& c) {
  return only(linear_cross_entropy(c.in("h"), c.in("w"), c.in("target"), options_of(c)));
}
OpOutputs z_loss(const C& c) {
  ops::LossOptions o = options_of(c);
  const Tensor ce = cross_entropy(c.in("x"), c.in("target"), o);
  o.z_loss = c.number("coef");
  std::vector<int64_t> counted;
  const auto targets = to_host<int64_t>(c.in("target"));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] != o.ignore_index) counted.push_back(static_cast<int64_t>(i));
  }
  const int64_t n = static_cast<int64_t>(counted.size());
  const Tensor rows = index_select(
      c.in("x"), from_host<int64_t>(std::span<const int64_t>(counted), {n}, c.device), 0);
  return {{"ce", ce},
          {"z", mean(square(logsumexp(rows, {1})))},
          {"loss", cross_entropy(c.in("x"), c.in("target"), o)}};
}
OpOutputs perplexity(const C& c) { return only(exp(cross_entropy(c.in("x"), c.in("target")))); }
OpOutputs mse(const C& c) { return only(mean(square(sub(c.in("x"), c.in("y"))))); }

}  // namespace

void add_position_ops(OpTable& table) {
  table["alibi_bias"] = alibi_bias;
  table["alibi_slopes"] = slopes;
  table["alibi_slopes_mpt"] = slopes;  // another recipe, the same numbers
  table["inv_freq"] = inverse_frequencies;
  table["rope_half"] = rope_case<RotaryPairs::half_split>;
  table["rope_interleaved"] = rope_case<RotaryPairs::interleaved>;
  table["rope_permute"] = rope_permute;
  table["sinusoidal_concat"] = sinusoidal<Sinusoid::halves>;
  table["sinusoidal_fairseq"] = sinusoidal<Sinusoid::fairseq>;
  table["sinusoidal_interleaved"] = sinusoidal<Sinusoid::interleaved>;
  table["t5_bias"] = t5_bias;
  table["t5_bucket"] = t5_buckets;
}
void add_loss_ops(OpTable& table) {
  table["cross_entropy"] = cross_entropy_case;
  table["cross_entropy_softcap"] = cross_entropy_case;
  table["fused_linear_cross_entropy"] = fused_cross_entropy;
  table["mse"] = mse;
  table["perplexity"] = perplexity;
  table["z_loss"] = z_loss;
}

}  // namespace tally::cli
