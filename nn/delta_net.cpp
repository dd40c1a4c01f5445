#include "nn/delta_net.h"

#include <cmath>

namespace tally::nn {
namespace {

/// Rows of length 1: x / sqrt(sum x^2 + 1e-6).
Tensor unit(const Tensor& x) {
  const auto n = static_cast<double>(x.size(-1));
  return scale(rms_norm(x, {}, 1e-6 / n), 1 / std::sqrt(n));
}

/// Each head `times` times, one after the other.
Tensor repeated(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const int64_t b = x.size(0), t = x.size(1), h = x.size(2), k = x.size(3);
  const Tensor wide = expand(reshape(x, {b, t, h, 1, k}), {b, t, h, times, k});
  return reshape(contiguous(wide), {b, t, h * times, k});
}

}  // namespace

DeltaNet::DeltaNet(const DeltaNetOptions& o, DType dtype, Device device) : options_(o) {
  check(
      o.d_model >= 1 && o.key_heads >= 1 && o.key_dim >= 1 && o.value_dim >= 1 && o.conv_width >= 1,
      "delta_net: d_model, key_heads, key_dim, value_dim and conv_width must be 1 or more; got ",
      o.d_model, ", ", o.key_heads, ", ", o.key_dim, ", ", o.value_dim, " and ", o.conv_width);
  check(o.value_heads >= 1 && o.value_heads % o.key_heads == 0,
        "delta_net: value_heads must be a multiple of key_heads = ", o.key_heads, "; got ",
        o.value_heads);
  const int64_t values = o.value_heads * o.value_dim,
                channels = 2 * o.key_heads * o.key_dim + values;
  qkv = empty({channels, o.d_model}, dtype, device);
  conv = empty({channels, o.conv_width}, dtype, device);
  z = empty({values, o.d_model}, dtype, device);
  beta = empty({o.value_heads, o.d_model}, dtype, device);
  decay = empty({o.value_heads, o.d_model}, dtype, device);
  decay_log = empty({o.value_heads}, dtype, device);
  decay_bias = empty({o.value_heads}, dtype, device);
  norm = empty({o.value_dim}, dtype, device);
  out = empty({o.d_model, values}, dtype, device);
}

Tensor DeltaNet::mix(const Tensor& x, RecurrentState* past, const Tensor& documents) const {
  using K = ops::ActivationKind;
  check(x.ndim() == 3 && x.size(2) == options_.d_model,
        "delta_net: x must be (B, T, D) with D = ", options_.d_model, "; got ", x.shape(),
        in_module());
  const int64_t b = x.size(0), t = x.size(1), hk = options_.key_heads, hv = options_.value_heads,
                k = options_.key_dim, m = options_.value_dim;
  const Tensor in = linear(x, qkv);
  const Tensor mixed = activation(
      past ? past->convolve(in, conv, {}, documents) : causal_conv1d(in, conv, {}, documents),
      K::silu);
  const auto heads = [&](int64_t first, int64_t count, int64_t size) {
    return reshape(contiguous(narrow(mixed, -1, first, count * size)), {b, t, count, size});
  };
  const Tensor queries = repeated(unit(heads(0, hk, k)), hv / hk);
  const Tensor keys = repeated(unit(heads(hk * k, hk, k)), hv / hk);
  const Tensor values = heads(2 * hk * k, hv, m);
  const Tensor rate = activation(linear(x, beta), K::sigmoid);
  const Tensor step = activation(add(linear(x, decay), decay_bias), K::softplus);
  const Tensor kept = mul(step, neg(exp(decay_log)));
  const auto [o, last] = gated_delta_rule(queries, keys, values, kept, rate,
                                          past ? past->state : Tensor(), 0, documents);
  if (past) past->state = last;
  const Tensor gating = reshape(linear(x, z), {b, t, hv, m});
  const Tensor y = gate(gating, rms_norm(o, norm, options_.norm_eps), K::silu);
  return linear(reshape(y, {b, t, hv * m}), out);
}

Tensor DeltaNet::forward(const Tensor& x, const Tensor& documents) const {
  const ModuleScope scope("delta_net");
  return mix(x, nullptr, documents);
}

Tensor DeltaNet::forward_cached(const Tensor& x, RecurrentState& past,
                                const Tensor& documents) const {
  const ModuleScope scope("delta_net");
  const PauseTape values_only;
  return mix(x, &past, documents);
}

void DeltaNet::visit(Visitor& v) {
  v.parameter("qkv.weight", qkv);
  v.parameter("conv.weight", conv);
  v.parameter("z.weight", z);
  v.parameter("beta.weight", beta);
  v.parameter("decay.weight", decay);
  v.parameter("decay_log", decay_log);
  v.parameter("decay_bias", decay_bias);
  v.parameter("norm.weight", norm);
  v.parameter("out.weight", out);
}

}  // namespace tally::nn
