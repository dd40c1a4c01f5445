#include "nn/shared_attention.h"

#include "autograd/functional.h"

namespace tally::nn {
namespace {

// Rotated in place of the tokens' rows of the table; as they are without one.
Tensor turned(const Tensor& heads, const Positions& positions, ops::RotaryPairs pairs) {
  if (!positions.table.defined()) return heads;
  return rope(heads, positions.table, {pairs, positions.offset});
}

Tensor normed_heads(const std::optional<Norm>& norm, const Tensor& heads) {
  return norm ? norm->forward(heads) : heads;
}

}  // namespace

SharedAttention::SharedAttention(const SharedAttentionOptions& o, DType dtype, Device device)
    : options_(o) {
  check(o.d_model >= 1 && o.kv_heads >= 1 && o.head_dim >= 1 && o.heads % o.kv_heads == 0,
        "shared_attention: d_model, kv_heads and head_dim must be 1 or more, and kv_heads must "
        "divide heads; got ",
        o.d_model, ", ", o.kv_heads, ", ", o.head_dim, " and heads = ", o.heads);
  const int64_t rows = o.heads * o.head_dim, kv_rows = o.kv_heads * o.head_dim;
  q = empty({rows, o.d_model}, dtype, device);
  if (!o.takes) k = empty({kv_rows, o.d_model}, dtype, device);
  if (!o.takes && !o.keys_as_values) v = empty({kv_rows, o.d_model}, dtype, device);
  out = empty({o.d_model, rows}, dtype, device);
  if (o.qk_norm) q_norm.emplace(o.norm, o.head_dim, dtype, device);
  if (o.qk_norm && !o.takes) k_norm.emplace(o.norm, o.head_dim, dtype, device);
}

Tensor SharedAttention::queries(const Tensor& x, const Positions& positions) const {
  const Tensor heads =
      reshape(linear(x, q), {x.size(0), x.size(1), options_.heads, options_.head_dim});
  return turned(normed_heads(q_norm, heads), positions, options_.rope_pairs);
}

KeyValues SharedAttention::make(const Tensor& x, const Positions& positions) const {
  const Shape shape{x.size(0), x.size(1), options_.kv_heads, options_.head_dim};
  const Tensor keys = reshape(linear(x, k), shape);
  const Tensor values = v.defined() ? reshape(linear(x, v), shape) : keys;
  return {turned(normed_heads(k_norm, keys), positions, options_.rope_pairs),
          options_.value_norm ? rms_norm(values, {}, options_.norm.eps) : values};
}

Tensor SharedAttention::attend(const Tensor& heads, const KeyValues& seen,
                               const Positions& positions,
                               const ops::AttentionOptions& options) const {
  check(seen.k.defined(),
        "shared_attention: this layer takes keys and values, and no layer before it made any");
  const Tensor documents = of_last_keys(positions.documents, 1, seen.k.size(1));
  const Tensor o = attention(heads, seen.k, seen.v, options, {}, {}, documents);
  return linear(reshape(o, {o.size(0), o.size(1), o.size(2) * o.size(3)}), out);
}

Tensor SharedAttention::forward(const Tensor& x, const Positions& positions, KeyValues& shared,
                                Generator* dropout) const {
  const ModuleScope scope("attention");
  ops::AttentionOptions a = options_.scores;
  a.dropout = attention_dropout(options_.dropout, dropout);
  if (!options_.takes) shared = make(x, positions);
  return attend(queries(x, positions), shared, positions, a);
}

Tensor SharedAttention::forward_cached(const Tensor& x, const Positions& positions,
                                       KeyValues& shared, KVCache::Layer& cache) const {
  const ModuleScope scope("attention");
  const PauseTape values_only;
  if (!options_.takes) {
    const KeyValues fresh = make(x, positions);
    const auto seen = cache.append(fresh.k, fresh.v, positions.documents.defined());
    shared = {seen.keys, seen.values};
  }
  return attend(queries(x, positions), shared, positions, options_.scores);
}

KVCache::Layer SharedAttention::make_cache(int64_t batch, int64_t capacity) const {
  const int64_t tokens = options_.takes ? 0 : capacity;
  return {{batch, tokens, options_.kv_heads, options_.head_dim}, q.dtype(), q.device(), window()};
}

void SharedAttention::visit(Visitor& visitor) {
  visitor.parameter("q.weight", q);
  visitor.parameter("k.weight", k);
  visitor.parameter("v.weight", v);
  if (q_norm) visitor.child("q_norm", *q_norm);
  if (k_norm) visitor.child("k_norm", *k_norm);
  visitor.parameter("out.weight", out);
}

}  // namespace tally::nn
