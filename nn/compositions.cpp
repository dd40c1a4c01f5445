#include "nn/compositions.h"

#include "autograd/functional.h"

namespace tally::nn {
namespace {

using Tensors = Sample::Tensors;

Tensor shifted(const Tensor& x, const Tensor& shift) { return shift.defined() ? add(x, shift) : x; }

Tensor normalized(const Tensor& heads, const Tensor& gain, const Tensor& shift,
                  const QKNorm::Attrs& a) {
  if (a.width == QKNorm::Width::none) return heads;
  const Shape s = heads.shape();
  const Tensor x =
      a.width == QKNorm::Width::full ? reshape(heads, {s[0], s[1], s[2] * s[3]}) : heads;
  const bool plus_one = a.norm.gain == NormGain::one_plus_gamma;
  if (a.width == QKNorm::Width::heads)
    return mul(a.norm.kind == NormKind::layer_norm ? layer_norm(x, {}, {}, a.norm.eps)
                                                   : rms_norm(x, {}, a.norm.eps),
               gain);
  return reshape(a.norm.kind == NormKind::layer_norm
                     ? layer_norm(x, gain, shift, a.norm.eps, plus_one)
                     : rms_norm(x, gain, a.norm.eps, plus_one),
                 s);
}

}  // namespace

Sample::Function plain_composition(ops::ActivationKind kind) {
  return [kind](const Tensors& in) -> Tensors {
    const Tensor h = activation(shifted(linear(in[0], in[3], in[4]), in[7]), kind);
    return {linear(shifted(h, in[8]), in[5], in[6])};
  };
}
Sample::Function gated_composition(ops::ActivationKind kind) {
  return [kind](const Tensors& in) -> Tensors {
    const Tensor a = shifted(linear(in[0], in[1], in[2]), in[7]), b = linear(in[0], in[3], in[4]);
    return {linear(shifted(mul(activation(a, kind), b), in[8]), in[5], in[6])};
  };
}
Sample::Function fused_composition(ops::ActivationKind kind, int64_t f) {
  return [kind, f](const Tensors& in) -> Tensors {
    const Tensor both = linear(in[0], in[3], in[4]);
    const Tensor a = shifted(narrow(both, -1, 0, f), in[7]), b = narrow(both, -1, f, f);
    return {linear(shifted(mul(activation(a, kind), b), in[8]), in[5], in[6])};
  };
}

// The layer from plain ops: each head group reshaped from its own product.
Sample::Function attention_composition(const AttentionLayer::Attrs& a) {
  return [a](const Tensors& in) -> Tensors {
    const int64_t b = in[0].size(0), t = in[0].size(1), h = a.heads, g = a.kv_heads, d = a.head_dim;
    const bool fused = !in[3].defined();
    const auto part = [&](int64_t first, int64_t heads, size_t own) {
      const Tensor w = fused ? narrow(in[1], 0, first * d, heads * d) : in[own];
      const Tensor bias =
          fused ? (in[2].defined() ? narrow(in[2], 0, first * d, heads * d) : Tensor())
                : in[own + 1];
      const Tensor y = linear(in[0], w, bias);
      return reshape(a.clip > 0 ? clamp(y, -a.clip, a.clip) : y, {b, t, heads, d});
    };
    Tensor q = part(0, h, 1), k = part(h, g, 3);
    const Tensor v = part(h + g, g, 5);
    q = normalized(q, in[11], in[12], a.qk_norm), k = normalized(k, in[13], in[14], a.qk_norm);
    if (in[9].defined()) q = rope(q, in[9], a.rope), k = rope(k, in[9], a.rope);
    Tensor o = reshape(attention(q, k, v, a.attention, {}, in[10], in[17], in[15]), {b, t, h * d});
    if (in[16].defined())
      o = mul(o, activation(linear(in[0], in[16]), ops::ActivationKind::sigmoid));
    return {linear(shifted(o, in[18]), in[7], in[8])};
  };
}

// The parallel layer from plain ops: a product for each part, and an addition.
Sample::Function parallel_composition(const ParallelLayer::Attrs& a) {
  return [a](const Tensors& in) -> Tensors {
    const int64_t b = in[0].size(0), t = in[0].size(1), f = a.d_ff;
    int64_t first = 0;
    const auto part = [&](int64_t rows) {
      const Tensor bias = in[2].defined() ? narrow(in[2], 0, first, rows) : Tensor();
      Tensor y = linear(in[0], narrow(in[1], 0, first, rows), bias);
      first += rows;
      return y;
    };
    const auto heads = [&](int64_t count) {
      return reshape(part(count * a.attention.head_dim), {b, t, count, a.attention.head_dim});
    };
    Tensor q = heads(a.attention.heads), k = heads(a.attention.kv_heads);
    const Tensor v = heads(a.attention.kv_heads);
    q = normalized(q, in[9], in[10], a.attention.qk_norm);
    k = normalized(k, in[11], in[12], a.attention.qk_norm);
    if (in[7].defined()) q = rope(q, in[7], a.attention.rope), k = rope(k, in[7], a.attention.rope);
    const Tensor o = attention(q, k, v, a.attention.attention, {}, in[8], in[13]);
    Tensor h = activation(part(f), a.mlp.activation);
    if (a.mlp.gated) h = mul(h, part(f));
    return {add(linear(reshape(o, {b, t, o.size(2) * o.size(3)}), in[3], in[4]),
                linear(h, in[5], in[6]))};
  };
}

AttentionLayer::Attrs attention_attrs(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  AttentionLayer::Attrs a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  return a;
}

SampleInput angles(int64_t positions, int64_t width) {
  return accumulating(constant(normal({positions, width}, 91)));
}

}  // namespace tally::nn
