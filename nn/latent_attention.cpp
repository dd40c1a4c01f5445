#include "nn/latent_attention.h"

#include <algorithm>
#include <cmath>

namespace tally::nn {

namespace {

NormOptions latent_norm(const LatentAttentionOptions& o) {
  NormOptions norm;
  norm.eps = o.norm_eps, norm.gain = o.norm_gain;
  return norm;
}

}  // namespace

LatentAttention::LatentAttention(const LatentAttentionOptions& o, DType dtype, Device device)
    : kv_norm(latent_norm(o), std::max<int64_t>(o.kv_lora_rank, 0), dtype, device),
      q_norm(latent_norm(o), std::max<int64_t>(o.q_lora_rank, 0), dtype, device),
      options_(o) {
  const int64_t k = o.qk_nope_head_dim, r = o.qk_rope_head_dim, m = o.v_head_dim;
  check(o.d_model >= 1 && o.heads >= 1 && o.kv_lora_rank >= 1 && k >= 1 && m >= 1,
        "latent_attention: d_model, heads, kv_lora_rank, qk_nope_head_dim and v_head_dim must be 1 "
        "or more; got ",
        o.d_model, ", ", o.heads, ", ", o.kv_lora_rank, ", ", k, " and ", m);
  check(r >= 2 && r % 2 == 0,
        "latent_attention: qk_rope_head_dim turns in pairs, so it must be even and 2 or more; got ",
        r);
  check(o.q_lora_rank >= 0, "latent_attention: q_lora_rank must not be negative; got ",
        o.q_lora_rank, "; 0 takes queries straight from x");
  const int64_t q_in = o.q_lora_rank > 0 ? o.q_lora_rank : o.d_model;
  if (o.q_lora_rank > 0)
    q_down = empty({o.q_lora_rank, o.d_model}, dtype, device);
  else
    q_norm.weight = {};
  q = empty({o.heads * (k + r), q_in}, dtype, device);
  kv_down = empty({o.kv_lora_rank + r, o.d_model}, dtype, device);
  kv_up = empty({o.heads * (k + m), o.kv_lora_rank}, dtype, device);
  out = empty({o.d_model, o.heads * m}, dtype, device);
  sink = make_sink(o.sink, o.off_by_one, o.heads, dtype, device);
}

ops::AttentionOptions LatentAttention::options() const {
  ops::AttentionOptions a = options_.scores;
  const auto size = static_cast<double>(options_.qk_nope_head_dim + options_.qk_rope_head_dim);
  a.scale = options_.scale != 0 ? options_.scale : 1 / std::sqrt(size);
  return a;
}

LatentAttention::Parts LatentAttention::project(const Tensor& x, const Positions& positions) const {
  const int64_t k = options_.qk_nope_head_dim, r = options_.qk_rope_head_dim,
                c = options_.kv_lora_rank;
  const int64_t b = x.size(0), t = x.size(1);
  const auto turn = [&](const Tensor& heads) {
    if (!positions.table.defined()) return heads;
    return rope(heads, positions.table, {options_.rope_pairs, positions.offset});
  };
  const Tensor from = q_down.defined() ? q_norm.forward(linear(x, q_down)) : x;
  const Tensor queries = reshape(linear(from, q), {b, t, options_.heads, k + r});
  const Tensor down = linear(x, kv_down);
  return {narrow(queries, -1, 0, k), turn(narrow(queries, -1, k, r)),
          kv_norm.forward(contiguous(narrow(down, -1, 0, c))),
          turn(reshape(contiguous(narrow(down, -1, c, r)), {b, t, 1, r}))};
}

Tensor LatentAttention::forward(const Tensor& x, const Positions& positions,
                                Generator* dropout) const {
  const ModuleScope scope("attention");
  const int64_t b = x.size(0), t = x.size(1), h = options_.heads;
  const int64_t k = options_.qk_nope_head_dim, r = options_.qk_rope_head_dim,
                m = options_.v_head_dim;
  ops::AttentionOptions a = options();
  a.dropout = attention_dropout(options_.dropout, dropout);
  const Parts p = project(x, positions);
  const Tensor up = reshape(linear(p.latent, kv_up), {b, t, h, k + m});
  const Tensor keys = concat({narrow(up, -1, 0, k), expand(p.key, {b, t, h, r})}, -1);
  const Tensor o = attention(concat({p.plain, p.turned}, -1), keys, narrow(up, -1, k, m), a, {},
                             positions.bias, positions.documents, sink);
  return linear(reshape(o, {b, t, h * m}), out);
}

Tensor LatentAttention::forward_cached(const Tensor& x, const Positions& positions,
                                       KVCache::Layer& cache) const {
  const ModuleScope scope("attention");
  const PauseTape values_only;
  const int64_t b = x.size(0), t = x.size(1), h = options_.heads;
  const int64_t k = options_.qk_nope_head_dim, r = options_.qk_rope_head_dim,
                m = options_.v_head_dim, c = options_.kv_lora_rank;
  const Parts p = project(x, positions);
  const Tensor rows = concat({p.latent, reshape(p.key, {b, t, r})}, -1);
  const bool ordered = positions.bias.defined() || positions.documents.defined();
  const Tensor keys = cache.append(reshape(rows, {b, t, 1, c + r}), {}, ordered).keys;
  const Tensor up = reshape(kv_up, {h, k + m, c});
  // (B,H,T,K) x (H,K,C): the query in the latent's space.
  const Tensor absorbed = matmul(permute(p.plain, {0, 2, 1, 3}), narrow(up, 1, 0, k));
  const Tensor queries = concat({permute(absorbed, {0, 2, 1, 3}), p.turned}, -1);
  const int64_t count = keys.size(1);
  const Tensor o = attention(queries, keys, narrow(keys, -1, 0, c), options(), {},
                             of_last_keys(positions.bias, -1, count),
                             of_last_keys(positions.documents, 1, count), sink);
  const Tensor values = matmul(permute(o, {0, 2, 1, 3}), narrow(up, 1, k, m), false, true);
  return linear(reshape(contiguous(permute(values, {0, 2, 1, 3})), {b, t, h * m}), out);
}

KVCache::Layer LatentAttention::make_cache(int64_t batch, int64_t capacity) const {
  return {{batch, capacity, 1, cached_numbers()}, kv_up.dtype(), kv_up.device(), window(), false};
}

void LatentAttention::visit(Visitor& v) {
  v.parameter("q_down.weight", q_down);
  v.parameter("q_norm.weight", q_norm.weight);
  v.parameter("q.weight", q);
  v.parameter("kv_down.weight", kv_down);
  v.parameter("kv_norm.weight", kv_norm.weight);
  v.parameter("kv_up.weight", kv_up);
  if (!options_.off_by_one) v.parameter("sink", sink);
  v.parameter("out.weight", out);
}

}  // namespace tally::nn
