#include "nn/mamba.h"

namespace tally::nn {

Mamba::Mamba(const MambaOptions& o, DType dtype, Device device) : options_(o) {
  check(o.d_model >= 1 && o.inner >= 1 && o.state >= 1 && o.dt_rank >= 1 && o.conv_width >= 1,
        "mamba: d_model, inner, state, dt_rank and conv_width must be 1 or more; got ", o.d_model,
        ", ", o.inner, ", ", o.state, ", ", o.dt_rank, " and ", o.conv_width);
  const auto make = [&](const Shape& shape) { return empty(shape, dtype, device); };
  in = make({2 * o.inner, o.d_model});
  conv = Matrix(o.inner, o.conv_width, o.conv_bias, dtype, device);
  parameters = make({o.dt_rank + 2 * o.state, o.inner});
  dt = Matrix(o.inner, o.dt_rank, true, dtype, device);
  decay_log = make({o.inner, o.state});
  skip = make({o.inner});
  out = make({o.d_model, o.inner});
  if (!o.norms) return;
  dt_norm = make({o.dt_rank}), b_norm = make({o.state}), c_norm = make({o.state});
}

Tensor Mamba::mix(const Tensor& x, RecurrentState* past, const Tensor& documents) const {
  using K = ops::ActivationKind;
  check(x.ndim() == 3 && x.size(2) == options_.d_model,
        "mamba: x must be (B, T, D) with D = ", options_.d_model, "; got ", x.shape(), in_module());
  const int64_t c = options_.inner, n = options_.state, r = options_.dt_rank;
  const Tensor both = linear(x, in), first = contiguous(narrow(both, -1, 0, c));
  const Tensor u = activation(past ? past->convolve(first, conv.weight, conv.bias, documents)
                                   : causal_conv1d(first, conv.weight, conv.bias, documents),
                              K::silu);
  const Tensor all = linear(u, parameters);
  const auto part = [&](int64_t at, int64_t size, const Tensor& gain) {
    const Tensor own = contiguous(narrow(all, -1, at, size));
    return gain.defined() ? rms_norm(own, gain, options_.norm_eps) : own;
  };
  const Tensor step = activation(linear(part(0, r, dt_norm), dt.weight, dt.bias), K::softplus);
  const auto [o, last] =
      selective_scan(u, step, neg(exp(decay_log)), part(r, n, b_norm), part(r + n, n, c_norm), skip,
                     past ? past->state : Tensor(), documents);
  if (past) past->state = last;
  return linear(gate(narrow(both, -1, c, c), o, K::silu), out);
}

Tensor Mamba::forward(const Tensor& x, const Tensor& documents) const {
  const ModuleScope scope("mamba");
  return mix(x, nullptr, documents);
}

Tensor Mamba::forward_cached(const Tensor& x, RecurrentState& past, const Tensor& documents) const {
  const ModuleScope scope("mamba");
  const PauseTape values_only;
  return mix(x, &past, documents);
}

void Mamba::visit(Visitor& v) {
  v.parameter("in.weight", in);
  v.parameter("conv.weight", conv.weight);
  v.parameter("conv.bias", conv.bias);
  v.parameter("parameters.weight", parameters);
  v.parameter("dt_norm.weight", dt_norm);
  v.parameter("b_norm.weight", b_norm);
  v.parameter("c_norm.weight", c_norm);
  v.parameter("dt.weight", dt.weight);
  v.parameter("dt.bias", dt.bias);
  v.parameter("decay_log", decay_log);
  v.parameter("skip", skip);
  v.parameter("out.weight", out);
}

}  // namespace tally::nn
