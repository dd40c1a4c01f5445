#include "nn/mixture_of_experts.h"

#include <cmath>

#include "core/ops/selection_bias.h"

namespace tally::nn {

MixtureOfExperts::MixtureOfExperts(const MixtureOptions& o, DType dtype, Device device)
    : options_(o) {
  check(o.d_model >= 1 && o.d_ff >= 1 && o.experts >= 1,
        "mixture_of_experts: d_model, d_ff and experts must be 1 or more; got ", o.d_model, ", ",
        o.d_ff, " and ", o.experts);
  check(!o.shared_gate || o.shared_ff > 0,
        "mixture_of_experts: shared_gate needs a shared expert; set shared_ff");
  ops::MoeRouter::check_options(o.router, o.experts);
  const auto make = [&](Matrix& m, const Shape& weight, const Shape& bias, bool with_bias) {
    m.weight = empty(weight, dtype, device);
    if (with_bias) m.bias = empty(bias, dtype, device);
  };
  const int64_t e = o.experts, d = o.d_model, wide = o.gated ? 2 * o.d_ff : o.d_ff;
  make(router, {e, d}, {e}, o.router_bias);
  if (o.router_norm) router_scale = empty({d}, dtype, device);
  if (o.expert_scale) expert_scale = empty({e}, dtype, device);
  make(up, {e, wide, d}, {e, wide}, o.bias);
  make(down, {e, d, o.d_ff}, {e, d}, o.bias);
  check(o.bias_rate == 0 || o.selection_bias,
        "mixture_of_experts: bias_rate moves the bias of the choice; set selection_bias");
  if (o.selection_bias) selection_bias = zeros({e}, dtype, device);
  if (o.bias_rate > 0) load = zeros({e}, acc_dtype(dtype), device);
  if (o.shared_ff > 0) {
    FeedForwardOptions f;
    f.d_model = d, f.d_ff = o.shared_ff;
    f.activation = o.activation, f.gated = o.gated, f.bias = o.bias;
    f.parameter = o.parameter, f.limit = o.limit, f.offset = o.offset;
    shared.emplace(f, dtype, device);
  }
  if (o.shared_gate) shared_gate = empty({1, d}, dtype, device);
}

// The constant goes into the gain: a product for each channel, not for each of every token.
Tensor MixtureOfExperts::scores(const Tensor& seen) const {
  if (!router_scale.defined()) return linear(seen, router.weight, router.bias);
  const Tensor gain = scale(router_scale, 1 / std::sqrt(static_cast<double>(options_.d_model)));
  return linear(rms_norm(seen, gain, options_.norm_eps), router.weight, router.bias);
}

Tensor MixtureOfExperts::scaled(const Tensor& weights, const Tensor& chosen) const {
  if (!expert_scale.defined()) return weights;
  const Tensor rows = embedding(chosen, reshape(expert_scale, {options_.experts, 1}));
  return mul(weights, reshape(rows, weights.shape()));
}

MixtureOutput MixtureOfExperts::route(const Tensor& x, bool counts, const Tensor& seen) const {
  const ModuleScope scope("experts");
  MixtureOutput out;
  out.logits = scores(seen.defined() ? seen : x);
  const Tensor moved = selection_bias.defined() ? selection_bias.detach() : Tensor();
  const auto [weights, chosen] = moe_router(out.logits, options_.router, moved);
  if (counts && load.defined()) ops::SelectionBias::count(chosen, load, x.dtype());
  const auto [rows, places, offsets] = expert_gather(x, chosen, options_.experts);
  const Tensor wide = expert_linear(rows, up.weight, offsets, up.bias);
  const Tensor h = options_.gated ? gate(wide, {}, options_.activation, options_.parameter,
                                         options_.limit, options_.offset)
                                  : activation(wide, options_.activation, options_.parameter);
  out.y = expert_combine(expert_linear(h, down.weight, offsets, down.bias), scaled(weights, chosen),
                         places);
  out.chosen = chosen;
  if (!shared) return out;
  Tensor common = shared->forward(x);
  if (shared_gate.defined()) {
    common = mul(common, activation(linear(x, shared_gate), ops::ActivationKind::sigmoid));
  }
  out.y = add(out.y, common);
  return out;
}

void MixtureOfExperts::update_selection_bias() const {
  if (load.defined()) ops::SelectionBias::update(selection_bias, load, options_.bias_rate);
}
void MixtureOfExperts::forget_load() const {
  if (load.defined()) backend(load.device()).zero(load.data(), load.nbytes());
}

void MixtureOfExperts::visit(Visitor& v) {
  v.parameter("router.weight", router.weight);
  v.parameter("router.bias", router.bias);
  v.parameter("router.scale", router_scale);
  v.parameter("router.expert_scale", expert_scale);
  v.buffer("router.selection_bias", selection_bias);
  v.parameter(options_.gated ? "experts.gate_up.weight" : "experts.up.weight", up.weight);
  v.parameter(options_.gated ? "experts.gate_up.bias" : "experts.up.bias", up.bias);
  v.parameter("experts.down.weight", down.weight);
  v.parameter("experts.down.bias", down.bias);
  if (shared) v.child("shared", *shared);
  v.parameter("shared_gate.weight", shared_gate);
}

}  // namespace tally::nn
