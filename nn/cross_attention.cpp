#include "nn/cross_attention.h"

namespace tally::nn {
namespace {

using CrossLayer = CrossAttentionLayer;

void check_sequence(const char* what, const char* axes, const Tensor& t) {
  check_defined(CrossLayer::name, what, t);
  check(t.ndim() == 3, "cross_attention_layer: ", what, " must be ", axes, "; got ", t.shape(),
        in_module());
}

void check_rows(const char* what, const Tensor& w, int64_t rows) {
  check_defined(CrossLayer::name, what, w);
  check(w.ndim() == 2 && w.size(0) == rows, "cross_attention_layer: ", what, " must have ", rows,
        " rows, those of its heads; got ", w.shape(), in_module());
}

// The mask of keys as attention takes it.
Tensor of_keys(const Tensor& mask, const Tensor& k) {
  if (!mask.defined()) return {};
  check(mask.dtype() == DType::u8 && mask.shape() == Shape{k.size(0), k.size(1)},
        "cross_attention_layer: the mask must be (B, S) = (", k.size(0), ", ", k.size(1),
        ") of u8, 1 = a token, 0 = padding; got ", mask.shape(), " of ", mask.dtype(), in_module());
  return mask.reshape({mask.size(0), 1, 1, mask.size(1)});
}

}  // namespace

CrossLayer::Memory CrossLayer::project(const Tensor& memory, const Tensor& w_k, const Tensor& b_k,
                                       const Tensor& w_v, const Tensor& b_v, const Attrs& a,
                                       Saved* s) {
  check_sequence("memory", "(B, S, E)", memory);
  const bool fused = !w_v.defined();
  const int64_t g = a.kv_heads, d = a.head_dim;
  check_rows(fused ? "the weight of k and v" : "the weight of k", w_k, (fused ? 2 : 1) * g * d);
  const Tensor y = ops::Linear::forward(memory, w_k, b_k, {}, s ? &s->k : nullptr);
  if (fused) return {heads_of(y, 0, g, d), heads_of(y, g, g, d)};
  check_rows("the weight of v", w_v, g * d);
  const Tensor v = ops::Linear::forward(memory, w_v, b_v, {}, s ? &s->v : nullptr);
  return {heads_of(y, 0, g, d), heads_of(v, 0, g, d)};
}

Tensor CrossLayer::attend(const Tensor& x, const Memory& memory, const Tensor& w_q,
                          const Tensor& b_q, const Tensor& w_out, const Tensor& b_out,
                          const Tensor& mask, const Tensor& bias, const Tensor& documents,
                          const Attrs& a, Saved* s) {
  check_sequence("x", "(B, T, D)", x);
  check_rows("the weight of q", w_q, a.heads * a.head_dim);
  check(x.size(0) == memory.k.size(0), "cross_attention_layer: x and memory must have one batch; ",
        "got B = ", x.size(0), " and ", memory.k.size(0), in_module());
  const Tensor q = ops::Linear::forward(x, w_q, b_q, {}, s ? &s->q : nullptr);
  const Tensor o = ops::Attention::forward(heads_of(q, 0, a.heads, a.head_dim), memory.k, memory.v,
                                           of_keys(mask, memory.k), bias, documents, {},
                                           a.attention, s ? &s->attention : nullptr);
  return ops::Linear::forward(o.reshape(q.shape()), w_out, b_out, {}, s ? &s->out : nullptr);
}

Tensor CrossLayer::forward(const Tensor& x, const Tensor& memory, const Tensor& w_q,
                           const Tensor& b_q, const Tensor& w_k, const Tensor& b_k,
                           const Tensor& w_v, const Tensor& b_v, const Tensor& w_out,
                           const Tensor& b_out, const Tensor& mask, const Tensor& bias,
                           const Tensor& documents, const Attrs& a, Saved* s) {
  const Memory kv = project(memory, w_k, b_k, w_v, b_v, a, s);
  if (s) s->attrs = a, s->fused = !w_v.defined(), s->keys = memory.size(1);
  return attend(x, kv, w_q, b_q, w_out, b_out, mask, bias, documents, a, s);
}

std::array<Tensor, 13> CrossLayer::backward(const Tensor& dy, Saved&& s, const Into<13>& into) {
  check_sequence("the gradient of the output", "(B, T, D)", dy);
  const int64_t b = dy.size(0), t = dy.size(1), h = s.attrs.heads, g = s.attrs.kv_heads,
                d = s.attrs.head_dim;
  auto [d_o, dw_out, db_out] = ops::Linear::backward(dy, std::move(s.out), into.pick(-1, 8, 9));
  s.out = {};

  const auto fresh = [&](int64_t tokens, int64_t heads) {
    return empty({b, tokens, heads * d}, dy.dtype(), dy.device());
  };
  // One buffer [dk | dv] when fused: its slices are written in place of two tensors.
  const Tensor dq = fresh(t, h), dk = fresh(s.keys, s.fused ? 2 * g : g),
               dv = s.fused ? dk : fresh(s.keys, g);
  const GradTensor dbias = into.at(11, s.attention.bias);
  ops::Attention::backward_to(d_o.reshape({b, t, h, d}), std::move(s.attention),
                              {heads_of(dq, 0, h, d), false}, {heads_of(dk, 0, g, d), false},
                              {heads_of(dv, s.fused ? g : 0, g, d), false}, dbias);
  d_o = Tensor();
  auto [dx, dw_q, db_q] = ops::Linear::backward(dq, std::move(s.q), into.pick(0, 2, 3));
  auto [dm, dw_k, db_k] = ops::Linear::backward(dk, std::move(s.k), into.pick(1, 4, 5));
  if (s.fused) return {dx, dm, dw_q, db_q, dw_k, db_k, {}, {}, dw_out, db_out, {}, dbias, {}};
  Into<3> more = into.pick(1, 6, 7);  // the memory feeds both: the second product adds to the first
  more.target[0] = dm, more.overwrite[0] = false;
  auto [dm_sum, dw_v, db_v] = ops::Linear::backward(dv, std::move(s.v), more);
  return {dx, dm_sum, dw_q, db_q, dw_k, db_k, dw_v, db_v, dw_out, db_out, {}, dbias, {}};
}

CrossAttention::CrossAttention(const CrossAttentionOptions& o, DType dtype, Device device)
    : options_(o) {
  check(o.d_model >= 1 && o.heads >= 1 && o.kv_heads >= 1 && o.head_dim >= 1,
        "cross_attention: d_model, heads, kv_heads and head_dim must be 1 or more; got ", o.d_model,
        ", ", o.heads, ", ", o.kv_heads, " and ", o.head_dim);
  const auto make = [&](int64_t rows, int64_t in, bool bias) {
    return Matrix(rows, in, bias, dtype, device);
  };
  const int64_t q_rows = o.heads * o.head_dim, kv_rows = o.kv_heads * o.head_dim;
  const int64_t memory = o.d_memory ? o.d_memory : o.d_model;
  q = make(q_rows, o.d_model, o.qkv_bias);
  k = make(o.fused ? 2 * kv_rows : kv_rows, memory, o.qkv_bias);
  if (!o.fused) v = make(kv_rows, memory, o.qkv_bias);
  out = make(o.d_model, q_rows, o.out_bias);
}

CrossLayer::Attrs CrossAttention::attrs() const {
  CrossLayer::Attrs a;
  a.heads = options_.heads, a.kv_heads = options_.kv_heads, a.head_dim = options_.head_dim;
  a.attention = options_.scores;
  a.attention.causal = options_.causal;
  a.attention.scale = options_.scale;
  return a;
}

Tensor CrossAttention::forward(const Tensor& x, const Tensor& memory, const Tensor& mask,
                               const Tensor& bias, Generator* dropout,
                               const Tensor& documents) const {
  CrossLayer::Attrs a = attrs();
  a.attention.dropout = attention_dropout(options_.dropout, dropout);
  return apply<CrossLayer>(a, x, memory, q.weight, q.bias, k.weight, k.bias, v.weight, v.bias,
                           out.weight, out.bias, mask, bias, documents);
}

CrossAttention::Memory CrossAttention::remember(const Tensor& memory) const {
  const PauseTape values_only;
  return CrossLayer::project(memory, k.weight, k.bias, v.weight, v.bias, attrs(), nullptr);
}

Tensor CrossAttention::recall(const Tensor& x, const Memory& memory, const Tensor& mask,
                              const Tensor& bias) const {
  const PauseTape values_only;
  return CrossLayer::attend(x, memory, q.weight, q.bias, out.weight, out.bias, mask, bias, {},
                            attrs(), nullptr);
}

Tensor CrossAttention::forward_cached(const Tensor& x, const Tensor& bias,
                                      KVCache::Layer& cache) const {
  const Memory next = remember(x);
  const KVCache::Layer::Seen seen = cache.append(next.k, next.v);
  return recall(x, {seen.keys, seen.values}, {}, bias);
}

void CrossAttention::visit(Visitor& visitor) {
  visitor.parameter("q.weight", q.weight);
  visitor.parameter("q.bias", q.bias);
  visitor.parameter(options_.fused ? "kv.weight" : "k.weight", k.weight);
  visitor.parameter(options_.fused ? "kv.bias" : "k.bias", k.bias);
  visitor.parameter("v.weight", v.weight);
  visitor.parameter("v.bias", v.bias);
  visitor.parameter("out.weight", out.weight);
  visitor.parameter("out.bias", out.bias);
}

}  // namespace tally::nn
