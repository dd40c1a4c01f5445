#include "nn/decoder.h"

#include <numeric>

#include "autograd/checkpoint.h"
#include "core/ops/position.h"

namespace tally::nn {

Decoder::Decoder(const Options& o, DType dtype, Device device)
    : embedding(o.vocab, o.block.attention.d_model, dtype, device),
      final_norm(o.block.norm, o.block.attention.d_model, o.block.norm_eps, o.block.norm_bias,
                 dtype, device),
      options_(o) {
  const int64_t d = o.block.attention.d_model;
  if (o.learned_positions) position = std::make_unique<Embedding>(o.context, d, dtype, device);
  for (int64_t i = 0; i < o.layers; ++i)
    blocks.push_back(std::make_unique<Block>(o.block, dtype, device));
  if (!o.tied_head) head_weight = empty({o.vocab, d}, dtype, device);
  if (o.head_bias) head_bias = empty({o.vocab}, dtype, device);
  if (o.rope)
    rope_ =
        rope_table(o.context, o.block.attention.head_dim, o.rope_base, acc_dtype(dtype), device);
}

Tensor Decoder::embed(const Tensor& ids, int64_t first, Generator* dropout) {
  check(ids.defined() && ids.ndim() == 2, "decoder: ids must be (B, T); got ",
        ids.defined() ? ids.shape() : Shape{});
  check(first + ids.size(1) <= options_.context, "decoder: the context holds ", options_.context,
        " tokens; got ", first, " before and ", ids.size(1),
        " now; shorten the text, or keep its last ", options_.context, " tokens");
  Tensor x = embedding.forward(ids);
  if (position) {
    std::vector<int64_t> places(static_cast<size_t>(ids.size(1)));
    std::iota(places.begin(), places.end(), first);
    x = add(x, position->forward(from_host<int64_t>(places, {ids.size(1)}, device())));
  }
  const double p = options_.embedding_dropout;
  return dropout && p > 0 ? tally::dropout(x, p, *dropout) : x;
}

Tensor Decoder::through_block(size_t i, const Tensor& x, Generator* dropout) const {
  const ModuleScope scope("blocks", static_cast<int>(i));
  const Block& block = *blocks[i];
  if (i >= recompute.size() || !recompute[i]) return block.forward(x, rope_, dropout);
  const auto segment = [&block, rope = rope_](const Tensor& in, Generator* streams) {
    return block.forward(in, rope, streams);
  };
  return checkpoint(segment, dropout, x);
}

Tensor Decoder::hidden(const Tensor& ids, Generator* dropout) {
  Tensor x;
  {
    const ModuleScope scope("embedding");
    x = embed(ids, 0, dropout);
  }
  for (size_t i = 0; i < blocks.size(); ++i) x = through_block(i, x, dropout);
  const ModuleScope scope("final_norm");
  return final_norm.forward(x);
}

Tensor Decoder::logits(const Tensor& ids) {
  const Tensor h = hidden(ids);
  const ModuleScope scope("head");
  return linear(h, head(), head_bias);
}

Tensor Decoder::loss(const Tensor& ids, const Tensor& targets, int64_t count, Generator* dropout,
                     Tensor* stats) {
  const Tensor h = hidden(ids, dropout);
  const ModuleScope scope("head");
  ops::LossOptions o;
  o.z_loss = options_.z_loss;
  if (count > 0) o.normalizer = static_cast<double>(count);
  const auto [loss, sums] = head_bias.defined()
                                ? cross_entropy_with_stats(linear(h, head(), head_bias), targets, o)
                                : linear_cross_entropy_with_stats(h, head(), targets, o);
  if (stats) *stats = sums;
  return loss;
}

Tensor Decoder::next_logits(const Tensor& ids, KVCache& cache) {
  const PauseTape values_only;
  Tensor x = embed(ids, cache.length(), nullptr);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ModuleScope scope("blocks", static_cast<int>(i));
    x = blocks[i]->forward_cached(x, rope_, cache.layer(static_cast<int64_t>(i)));
  }
  const Tensor last = x.narrow(1, ids.size(1) - 1, 1).reshape({ids.size(0), x.size(2)});
  const ModuleScope scope("head");
  return linear(final_norm.forward(last), head(), head_bias);
}

KVCache Decoder::make_cache(int64_t batch, int64_t capacity) const {
  const AttentionOptions& a = options_.block.attention;
  return KVCache(options_.layers, batch, capacity, a.kv_heads, a.head_dim, dtype(), device());
}

void Decoder::visit(Visitor& v) {
  v.child("embedding", embedding);
  if (position) v.child("position", *position);
  for (size_t i = 0; i < blocks.size(); ++i) v.child("blocks." + std::to_string(i), *blocks[i]);
  v.child("final_norm", final_norm);
  v.parameter("head.weight", head_weight);
  v.parameter("head.bias", head_bias);
}

}  // namespace tally::nn
