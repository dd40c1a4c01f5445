#include "autograd/functional.h"
#include "nn/cross_attention.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

using Tensors = Sample::Tensors;

CrossAttentionLayer::Attrs cross_attrs(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  CrossAttentionLayer::Attrs a;
  a.heads = heads, a.kv_heads = kv_heads, a.head_dim = head_dim;
  a.attention.causal = false;
  return a;
}

// The layer from plain ops: each head group reshaped from its own product.
Sample::Function cross_composition(const CrossAttentionLayer::Attrs& a) {
  return [a](const Tensors& in) -> Tensors {
    const Tensor &x = in[0], &memory = in[1], &mask = in[10];
    const int64_t b = x.size(0), t = x.size(1), s = memory.size(1), h = a.heads, g = a.kv_heads,
                  d = a.head_dim;
    const bool fused = !in[6].defined();
    const auto part = [&](size_t own, int64_t first) {
      const auto rows = [&](const Tensor& w) {
        return fused && w.defined() ? narrow(w, 0, first * d, g * d) : w;
      };
      return reshape(linear(memory, rows(in[own]), rows(in[own + 1])), {b, s, g, d});
    };
    const Tensor q = reshape(linear(x, in[2], in[3]), {b, t, h, d});
    const Tensor keys = part(4, 0), values = part(fused ? 4 : 6, fused ? g : 0);
    const Tensor seen = mask.defined() ? mask.reshape({b, 1, 1, s}) : Tensor();
    const Tensor o = attention(q, keys, values, a.attention, seen, in[11], in[12]);
    return {linear(reshape(o, {b, t, h * d}), in[8], in[9])};
  };
}

}  // namespace

void add_cross_attention(std::vector<Sample>& all) {
  using L = CrossAttentionLayer;
  const auto grouped = cross_attrs(4, 2, 2);
  auto unscaled = cross_attrs(2, 2, 3);
  unscaled.attention.scale = 1;
  auto dropped = cross_attrs(2, 1, 2);
  dropped.attention.dropout = {0.3, 5, 6};
  // The second sequence ends in padding, which costs nothing: declared is a bound.
  const SampleInput mask = flags({2, 4}, {1, 1, 1, 1, 1, 1, 0, 0});
  all.push_back(sample<L>("one matrix of keys and values, grouped heads, padding", grouped,
                          {normal({2, 3, 5}, 1), normal({2, 4, 3}, 2), normal({8, 5}, 3), absent(),
                           normal({8, 3}, 4), absent(), absent(), absent(), normal({5, 8}, 5),
                           absent(), mask, absent(), absent()})
                    .equals(cross_composition(grouped))
                    .bounded());
  // Without a bias of k: it adds to all scores of a row, and changes nothing.
  all.push_back(sample<L>("separate matrices with biases, no scale, a bias of the scores", unscaled,
                          {normal({1, 3, 4}, 6, 0.5), normal({1, 5, 4}, 7, 0.5),
                           normal({6, 4}, 8, 0.5), normal({6}, 9), normal({6, 4}, 10, 0.5),
                           absent(), normal({6, 4}, 12), normal({6}, 13), normal({4, 6}, 14),
                           normal({4}, 15), absent(), normal({2, 3, 5}, 16), absent()})
                    .equals(cross_composition(unscaled)));
  all.push_back(sample<L>("one matrix with biases, dropout, one token", dropped,
                          {normal({2, 1, 3}, 17), normal({2, 3, 2}, 18), normal({4, 3}, 19),
                           normal({4}, 20), normal({4, 2}, 21), normal({4}, 22), absent(), absent(),
                           normal({3, 4}, 23), normal({3}, 24), absent(), absent(), absent()})
                    .equals(cross_composition(dropped)));
  auto near = cross_attrs(2, 1, 2);
  near.attention.window = 2;
  all.push_back(
      sample<L>("a window to both sides, documents", near,
                {normal({2, 4, 3}, 25), normal({2, 4, 2}, 26), normal({4, 3}, 27), absent(),
                 normal({4, 2}, 28), absent(), absent(), absent(), normal({3, 4}, 29), absent(),
                 absent(), absent(), indices({2, 4}, {0, 0, 1, 1, 0, 1, 1, 1})})
          .equals(cross_composition(near))
          .bounded());
}

}  // namespace tally::nn
