#include "nn/samples.h"

#include "autograd/functional.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace tally::nn {
namespace {

using Tensors = Sample::Tensors;

// A table of angles as rope_table makes it, but from numbers that any scalar can hold.
SampleInput angles(int64_t positions, int64_t width) {
  return accumulating(constant(normal({positions, width}, 91)));
}

Sample::Function plain_composition(ops::ActivationKind kind) {
  return [kind](const Tensors& in) -> Tensors {
    return {linear(activation(linear(in[0], in[3], in[4]), kind), in[5], in[6])};
  };
}
Sample::Function gated_composition(ops::ActivationKind kind) {
  return [kind](const Tensors& in) -> Tensors {
    const Tensor a = linear(in[0], in[1], in[2]), b = linear(in[0], in[3], in[4]);
    return {linear(mul(activation(a, kind), b), in[5], in[6])};
  };
}
Sample::Function fused_composition(ops::ActivationKind kind, int64_t f) {
  return [kind, f](const Tensors& in) -> Tensors {
    const Tensor both = linear(in[0], in[3], in[4]);
    return {linear(mul(activation(narrow(both, -1, 0, f), kind), narrow(both, -1, f, f)), in[5],
                   in[6])};
  };
}

void add_feed_forward(std::vector<Sample>& all) {
  using L = FeedForwardLayer;
  using K = ops::ActivationKind;
  all.push_back(sample<L>("plain GELU with biases", {K::gelu, false},
                          {normal({2, 3, 4}, 1), absent(), absent(), normal({5, 4}, 2),
                           normal({5}, 3), normal({4, 5}, 4), normal({4}, 5)})
                    .equals(plain_composition(K::gelu)));
  all.push_back(sample<L>("gated SiLU, separate matrices", {K::silu, true},
                          {normal({2, 2, 3}, 6), normal({5, 3}, 7), absent(), normal({5, 3}, 8),
                           absent(), normal({3, 5}, 9), absent()})
                    .equals(gated_composition(K::silu)));
  all.push_back(sample<L>("gated tanh GELU, one matrix, biases", {K::gelu_tanh, true},
                          {normal({1, 3, 4}, 10), absent(), absent(), normal({6, 4}, 11),
                           normal({6}, 12), normal({4, 3}, 13), normal({4}, 14)})
                    .equals(fused_composition(K::gelu_tanh, 3)));
}

AttentionLayer::Attrs attention_attrs(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  AttentionLayer::Attrs a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  return a;
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
      return reshape(linear(in[0], w, bias), {b, t, heads, d});
    };
    Tensor q = part(0, h, 1), k = part(h, g, 3);
    const Tensor v = part(h + g, g, 5);
    if (in[9].defined()) q = rope(q, in[9], a.rope), k = rope(k, in[9], a.rope);
    const Tensor o = attention(q, k, v, a.attention, {}, in[10]);
    return {linear(reshape(o, {b, t, h * d}), in[7], in[8])};
  };
}

void add_attention(std::vector<Sample>& all) {
  using L = AttentionLayer;
  const auto grouped = attention_attrs(4, 2, 2), alone = attention_attrs(2, 2, 3);
  all.push_back(sample<L>("fused, grouped heads, RoPE", grouped,
                          {normal({2, 3, 5}, 1), normal({16, 5}, 2), absent(), absent(), absent(),
                           absent(), absent(), normal({5, 8}, 3), absent(), angles(3, 2), absent()})
                    .equals(attention_composition(grouped)));
  all.push_back(
      sample<L>("fused with biases, no positions", alone,
                {normal({1, 4, 4}, 4), normal({18, 4}, 5), normal({18}, 6), absent(), absent(),
                 absent(), absent(), normal({4, 6}, 7), normal({4}, 8), absent(), absent()})
          .equals(attention_composition(alone)));
  all.push_back(sample<L>("separate matrices, grouped heads, RoPE", grouped,
                          {normal({1, 3, 4}, 9), normal({8, 4}, 10), normal({8}, 11),
                           normal({4, 4}, 12), normal({4}, 13), normal({4, 4}, 14), normal({4}, 15),
                           normal({4, 8}, 16), absent(), angles(3, 2), absent()})
                    .equals(attention_composition(grouped)));
  auto far = grouped;
  far.attention.alibi = 1;
  all.push_back(
      sample<L>("fused, grouped heads, ALiBi and a bias of the scores", far,
                {normal({2, 3, 5}, 17), normal({16, 5}, 18), absent(), absent(), absent(), absent(),
                 absent(), normal({5, 8}, 19), absent(), absent(), normal({4, 3, 3}, 20)})
          .equals(attention_composition(far)));
}

}  // namespace

std::vector<Sample> layer_samples() {
  std::vector<Sample> all;
  add_attention(all);
  add_cross_attention(all);
  add_feed_forward(all);
  return all;
}

}  // namespace tally::nn
