#include "nn/feed_forward.h"

#include <cmath>

#include "autograd/functional.h"
#include "core/ops/functions.h"

namespace tally::nn {

int64_t ffn_width(int64_t d_model, double ratio, bool gated, int64_t multiple_of) {
  check(d_model >= 1 && ratio > 0 && std::isfinite(ratio) && multiple_of >= 1,
        "ffn_width: d_model and multiple_of must be 1 or more and ratio above 0; got ", d_model,
        ", ", multiple_of, " and ", ratio);
  const double width = ratio * static_cast<double>(d_model) * (gated ? 2.0 / 3.0 : 1.0);
  const auto whole = std::max<int64_t>(1, std::llround(width));
  return (whole + multiple_of - 1) / multiple_of * multiple_of;
}

FeedForward::FeedForward(const FeedForwardOptions& o, DType dtype, Device device) : options_(o) {
  const auto make = [&](int64_t rows, int64_t in) {
    return Matrix(rows, in, o.bias, dtype, device);
  };
  const bool fused = o.gated && o.fused;
  if (o.own_inputs && o.gated && !fused) gate = make(o.d_ff, o.d_model);
  if (o.own_inputs) up = make(fused ? 2 * o.d_ff : o.d_ff, o.d_model);
  down = make(o.d_model, o.d_ff);
  if (o.shifts) activation_shift = empty({}, dtype, device), shift = empty({}, dtype, device);
  if (o.learned == LearnedActivation::none) return;
  check(
      !o.shifts && o.own_inputs && o.limit == 0 && o.offset == 0,
      "feed_forward: a learned activation stands between two products of the layer's own, without "
      "limits, offsets or shifts");
  if (o.learned == LearnedActivation::swish)
    beta = empty({}, dtype, device);
  else
    alpha_p = empty({}, dtype, device), alpha_n = empty({}, dtype, device);
}

Tensor FeedForward::activated(const Tensor& x) const {
  if (options_.learned == LearnedActivation::swish) return learned_swish(x, beta);
  constexpr double kSlope = 0.5;  // at 0, of both sides
  const auto softplus = [](const Tensor& t) {
    return activation(t, ops::ActivationKind::softplus);
  };
  return xielu(x, softplus(alpha_p), apply<ops::AddScalar>({kSlope}, softplus(alpha_n)), kSlope);
}

Tensor FeedForward::forward_learned(const Tensor& x) const {
  const Tensor wide = linear(x, up.weight, up.bias);
  Tensor h;
  if (!options_.gated)
    h = activated(wide);
  else if (gate.weight.defined())
    h = mul(activated(linear(x, gate.weight, gate.bias)), wide);
  else
    h = mul(activated(contiguous(narrow(wide, -1, 0, options_.d_ff))),
            narrow(wide, -1, options_.d_ff, options_.d_ff));
  return linear(h, down.weight, down.bias);
}

void FeedForward::visit(Visitor& v) {
  v.parameter("gate.weight", gate.weight);
  v.parameter("gate.bias", gate.bias);
  const bool fused = options_.gated && options_.fused;
  v.parameter(fused ? "gate_up.weight" : "up.weight", up.weight);
  v.parameter(fused ? "gate_up.bias" : "up.bias", up.bias);
  v.parameter("activation_shift", activation_shift);
  v.parameter("shift", shift);
  v.parameter("beta", beta);
  v.parameter("alpha_p", alpha_p);
  v.parameter("alpha_n", alpha_n);
  v.parameter("down.weight", down.weight);
  v.parameter("down.bias", down.bias);
}

}  // namespace tally::nn
