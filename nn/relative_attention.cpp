// Attention with Transformer-XL's relative positions, from plain ops: the product with the vectors
// of all distances becomes a bias of the scores. Dai et al. 2019, arXiv:1901.02860, eq. 5.
#include <cmath>

#include "autograd/functional.h"
#include "nn/attention.h"

namespace tally::nn {

Tensor Attention::forward_relative(const Tensor& x, const Positions& positions,
                                   const ops::AttentionOptions& options,
                                   KVCache::Layer* cache) const {
  const int64_t h = options_.heads, g = options_.kv_heads, d = options_.head_dim;
  const auto split = [&](const Tensor& t) {
    return reshape(t, {t.size(0), t.size(1), t.size(2) / d, d});
  };
  const Tensor y = linear(x, q.weight, q.bias);
  const auto part = [&](int64_t first, int64_t heads, const Matrix& own) {
    return options_.fused ? narrow(y, -1, first * d, heads * d) : linear(x, own.weight, own.bias);
  };
  const Tensor queries = options_.fused ? narrow(y, -1, 0, h * d) : y;
  Tensor keys = split(part(h, g, k)), values = split(part(h + g, g, v));
  if (cache) {
    const KVCache::Layer::Seen seen = cache->append(keys, values, true);
    keys = seen.keys, values = seen.values;
  }
  const Tensor own = of_last_keys(positions.documents, 1, keys.size(1));
  const int64_t distances = positions.distances.size(0);
  const Tensor by_distance =
      reshape(linear(positions.distances, relative.weight), {distances, h, d});
  const Tensor scores = matmul(permute(split(add(queries, position_bias)), {0, 2, 1, 3}),
                               permute(by_distance, {1, 0, 2}), false, true);  // (B,H,T,R)
  const double factor = options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
  const Tensor bias = scale(relative_shift(scores, keys.size(1)), factor);
  Tensor o = reshape(
      attention(split(add(queries, content_bias)), keys, values, options, {}, bias, own, sink),
      {x.size(0), x.size(1), h * d});
  if (gate.weight.defined())
    o = tally::gate(linear(x, gate.weight), o, ops::ActivationKind::sigmoid);
  if (shift.defined()) o = add(o, shift);
  return linear(o, out.weight, out.bias);
}

}  // namespace tally::nn
