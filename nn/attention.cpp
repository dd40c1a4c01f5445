#include "nn/attention.h"

namespace tally::nn {
namespace {

/// y cut at -c and c; y itself where c is 0.
Tensor clipped(const Tensor& y, double c, ops::Clamp::Saved* s) {
  return c > 0 ? ops::Clamp::forward(y, {-c, c}, s) : y;
}
/// The gradient of what was cut.
Tensor clipped_back(const Tensor& dy, double c, ops::Clamp::Saved&& s) {
  return c > 0 ? ops::Clamp::backward(dy, std::move(s))[0] : dy;
}

}  // namespace

Tensor heads_of(const Tensor& x, int64_t first, int64_t heads, int64_t head_dim) {
  return x.narrow(-1, first * head_dim, heads * head_dim)
      .reshape({x.size(0), x.size(1), heads, head_dim});
}

ops::AttentionDropout attention_dropout(double p, Generator* dropout) {
  if (!dropout || p == 0) return {};
  return {p, dropout->seed(), dropout->take_stream()};
}

AttentionLayer::Heads AttentionLayer::project(const Tensor& x, const Tensor& w_q, const Tensor& b_q,
                                              const Tensor& w_k, const Tensor& b_k,
                                              const Tensor& w_v, const Tensor& b_v,
                                              const Tensor& table, const QKNorm::Weights& norm,
                                              const Attrs& a, Saved* s) {
  check_defined(name, "x", x);
  check_defined(name, "the weight of q", w_q);
  check(x.ndim() == 3, "attention_layer: x must be (B, T, D); got ", x.shape(), in_module());
  const bool fused = !w_k.defined();
  const int64_t rows = (a.heads + (fused ? 2 * a.kv_heads : 0)) * a.head_dim;
  check(w_q.ndim() == 2 && w_q.size(0) == rows, "attention_layer: the weight of q must have ", rows,
        " rows for H = ", a.heads, ", G = ", a.kv_heads, ", K = ", a.head_dim,
        fused ? " (fused q, k, v)" : "", "; got ", w_q.shape(), in_module());
  const int64_t h = a.heads, g = a.kv_heads, d = a.head_dim;
  Heads out;
  const Tensor y = clipped(ops::Linear::forward(x, w_q, b_q, {}, s ? &s->q : nullptr), a.clip,
                           s ? &s->q_clip : nullptr);
  out.q = heads_of(y, 0, h, d);
  if (fused) {
    out.k = heads_of(y, h, g, d);
    out.v = heads_of(y, h + g, g, d);
  } else {
    const Tensor keys = ops::Linear::forward(x, w_k, b_k, {}, s ? &s->k : nullptr);
    const Tensor values = ops::Linear::forward(x, w_v, b_v, {}, s ? &s->v : nullptr);
    out.k = heads_of(clipped(keys, a.clip, s ? &s->k_clip : nullptr), 0, g, d);
    out.v = heads_of(clipped(values, a.clip, s ? &s->v_clip : nullptr), 0, g, d);
  }
  out.q = QKNorm::forward(out.q, norm.q, a.qk_norm, s ? &s->q_norm : nullptr);
  out.k = QKNorm::forward(out.k, norm.k, a.qk_norm, s ? &s->k_norm : nullptr);
  if (table.defined()) {
    ops::Rope::turn(out.q, table, {}, a.rope, out.q);
    ops::Rope::turn(out.k, table, {}, a.rope, out.k);
  }
  return out;
}

Tensor AttentionLayer::forward(const Tensor& x, const Tensor& w_q, const Tensor& b_q,
                               const Tensor& w_k, const Tensor& b_k, const Tensor& w_v,
                               const Tensor& b_v, const Tensor& w_out, const Tensor& b_out,
                               const Tensor& table, const Tensor& bias, const Tensor& q_gain,
                               const Tensor& q_shift, const Tensor& k_gain, const Tensor& k_shift,
                               const Tensor& sink, const Tensor& w_gate, const Tensor& documents,
                               const Tensor& shift, const Attrs& a, Saved* s) {
  Heads heads =
      project(x, w_q, b_q, w_k, b_k, w_v, b_v, table, {{q_gain, q_shift}, {k_gain, k_shift}}, a, s);
  const Tensor o = ops::Attention::forward(heads.q, heads.k, heads.v, {}, bias, documents, sink,
                                           a.attention, s ? &s->attention : nullptr);
  if (s) {
    s->table = table;
    s->attrs = a;
    s->fused = !w_k.defined();
  }
  heads = {};
  return finish(x, o, w_gate, shift, w_out, b_out, s);
}

Tensor AttentionLayer::finish(const Tensor& x, const Tensor& heads, const Tensor& w_gate,
                              const Tensor& shift, const Tensor& w_out, const Tensor& b_out,
                              Saved* s) {
  Tensor o = heads.reshape({x.size(0), x.size(1), heads.size(2) * heads.size(3)});
  if (w_gate.defined()) {
    const Tensor z = ops::Linear::forward(x, w_gate, {}, {}, s ? &s->to_gate : nullptr);
    o = ops::Gate::forward(z, o, {ops::ActivationKind::sigmoid}, s ? &s->gate : nullptr);
  }
  if (shift.defined()) {
    check(shift.ndim() == 0, "attention_layer: the shift must be one number (); got ",
          shift.shape(), in_module());
    o = ops::Add::forward(o, shift, {}, s ? &s->shift : nullptr);
  }
  if (s) s->gated = w_gate.defined(), s->shifted = shift.defined();
  return ops::Linear::forward(o, w_out, b_out, {}, s ? &s->out : nullptr);
}

std::array<Tensor, 19> AttentionLayer::backward(const Tensor& dy, Saved&& s, const Into<19>& into) {
  const Attrs a = s.attrs;
  check_defined(name, "the gradient of the output", dy);
  check(dy.ndim() == 3, "attention_layer: the gradient of the output must be (B, T, D); got ",
        dy.shape(), in_module());
  const int64_t b = dy.size(0), t = dy.size(1), h = a.heads, g = a.kv_heads, d = a.head_dim;
  auto [d_o, dw_out, db_out] = ops::Linear::backward(dy, std::move(s.out), into.pick(-1, 7, 8));
  s.out = {};
  Tensor dshift;
  if (s.shifted) {
    auto [d_heads, d_number] = ops::Add::backward(d_o, std::move(s.shift), into.pick(-1, 18));
    d_o = d_heads, dshift = d_number;
  }
  // x feeds the gate and the projections: the later products add to what the first one gave.
  Into<3> first = into.pick(0, 1, 2);
  Tensor dw_gate;
  if (s.gated) {
    auto [dz, d_heads] = ops::Gate::backward(d_o, std::move(s.gate));
    d_o = d_heads;
    auto [dx, dw, none] = ops::Linear::backward(dz, std::move(s.to_gate), into.pick(0, 16, -1));
    first.target[0] = dx, first.overwrite[0] = false;
    dw_gate = dw;
  }

  // One buffer [dq | dk | dv] when fused: its slices are written in place of three tensors.
  Tensor dqkv, dq, dk, dv;
  if (s.fused) {
    dqkv = empty({b, t, (h + 2 * g) * d}, dy.dtype(), dy.device());
    dq = heads_of(dqkv, 0, h, d), dk = heads_of(dqkv, h, g, d), dv = heads_of(dqkv, h + g, g, d);
  } else {
    const auto fresh = [&](int64_t heads) {
      return empty({b, t, heads, d}, dy.dtype(), dy.device());
    };
    dq = fresh(h), dk = fresh(g), dv = fresh(g);
  }
  // Behind a norm stand tensors of their own: the norm's backward fills those in front of it.
  const Tensor to_q = dq, to_k = dk;
  if (a.qk_norm.width != QKNorm::Width::none)
    dq = empty({b, t, h, d}, dy.dtype(), dy.device()),
    dk = empty({b, t, g, d}, dy.dtype(), dy.device());
  const GradTensor dbias = into.at(10, s.attention.bias), dsink = into.at(15, s.attention.sink);
  ops::Attention::backward_to(d_o.reshape({b, t, h, d}), std::move(s.attention), {dq, false},
                              {dk, false}, {dv, false}, dbias, dsink);
  d_o = Tensor();
  if (s.table.defined()) {
    ops::Rope::turn_back(dq, s.table, {}, a.rope, {dq, false});
    ops::Rope::turn_back(dk, s.table, {}, a.rope, {dk, false});
  }
  const auto [dq_gain, dq_shift] =
      QKNorm::backward(dq, to_q, std::move(s.q_norm), a.qk_norm, into.pick(11, 12));
  const auto [dk_gain, dk_shift] =
      QKNorm::backward(dk, to_k, std::move(s.k_norm), a.qk_norm, into.pick(13, 14));
  dq = to_q, dk = to_k;
  if (s.fused) {
    dqkv = clipped_back(dqkv, a.clip, std::move(s.q_clip));
    auto [dx, dw, db] = ops::Linear::backward(dqkv, std::move(s.q), first);
    return {dx,    dw,      db,       {},      {},       {},    {},      dw_out, db_out, {},
            dbias, dq_gain, dq_shift, dk_gain, dk_shift, dsink, dw_gate, {},     dshift};
  }
  const auto flat = [&](const Tensor& heads, ops::Clamp::Saved& saved) {
    const Tensor rows = heads.reshape({b, t, heads.size(2) * d});
    return clipped_back(rows, a.clip, std::move(saved));
  };
  auto [dx, dw_q, db_q] = ops::Linear::backward(flat(dq, s.q_clip), std::move(s.q), first);
  Into<3> more = into.pick(0, 3, 4);  // x feeds all three: the later products add to the first
  more.target[0] = dx, more.overwrite[0] = false;
  auto [dx_k, dw_k, db_k] = ops::Linear::backward(flat(dk, s.k_clip), std::move(s.k), more);
  more = into.pick(0, 5, 6);
  more.target[0] = dx_k, more.overwrite[0] = false;
  auto [dx_v, dw_v, db_v] = ops::Linear::backward(flat(dv, s.v_clip), std::move(s.v), more);
  return {dx_v,  dw_q,    db_q,     dw_k,    db_k,     dw_v,  db_v,    dw_out, db_out, {},
          dbias, dq_gain, dq_shift, dk_gain, dk_shift, dsink, dw_gate, {},     dshift};
}

Attention::Attention(const AttentionOptions& o, DType dtype, Device device) : options_(o) {
  const auto make = [&](int64_t rows, int64_t in, bool bias) {
    return Matrix(rows, in, bias, dtype, device);
  };
  const int64_t q_rows = o.heads * o.head_dim, kv_rows = o.kv_heads * o.head_dim;
  if (o.own_projections) q = make(o.fused ? q_rows + 2 * kv_rows : q_rows, o.d_model, o.qkv_bias);
  if (o.own_projections && !o.fused) {
    k = make(kv_rows, o.d_model, o.qkv_bias);
    v = make(kv_rows, o.d_model, o.qkv_bias);
  }
  out = make(o.d_model, q_rows, o.out_bias);
  qk_norm = QKNorm::make(o.qk_norm, o.heads, o.kv_heads, o.head_dim, dtype, device);
  sink = make_sink(o.sink, o.off_by_one, o.heads, dtype, device);
  if (o.gate) gate = make(q_rows, o.d_model, false);
  if (o.shift) shift = empty({}, dtype, device);
  if (!o.xl_relative) return;
  content_bias = empty({q_rows}, dtype, device);
  position_bias = empty({q_rows}, dtype, device);
  relative = make(q_rows, o.d_model, false);
}

AttentionLayer::Attrs Attention::attrs() const {
  AttentionLayer::Attrs a;
  a.heads = options_.heads;
  a.kv_heads = options_.kv_heads;
  a.head_dim = options_.head_dim;
  a.rope.pairs = options_.rope_pairs;
  a.attention = options_.scores;
  a.attention.alibi = options_.alibi;
  a.qk_norm = options_.qk_norm;
  a.clip = options_.clip;
  return a;
}

Tensor Attention::forward(const Tensor& x, const Positions& positions, Generator* dropout) const {
  const ModuleScope scope("attention");
  AttentionLayer::Attrs a = attrs();
  a.rope.offset = positions.offset;
  a.attention.dropout = attention_dropout(options_.dropout, dropout);
  if (positions.distances.defined()) return forward_relative(x, positions, a.attention, nullptr);
  return apply<AttentionLayer>(a, x, q.weight, q.bias, k.weight, k.bias, v.weight, v.bias,
                               out.weight, out.bias, positions.table, positions.bias,
                               qk_norm.q.gain, qk_norm.q.shift, qk_norm.k.gain, qk_norm.k.shift,
                               sink, gate.weight, positions.documents, shift);
}

Tensor Attention::forward_cached(const Tensor& x, const Positions& positions,
                                 KVCache::Layer& cache) const {
  const ModuleScope scope("attention");
  const PauseTape values_only;
  AttentionLayer::Attrs a = attrs();
  a.rope.offset = positions.offset;
  if (positions.distances.defined()) return forward_relative(x, positions, a.attention, &cache);
  const auto heads = AttentionLayer::project(x, q.weight, q.bias, k.weight, k.bias, v.weight,
                                             v.bias, positions.table, qk_norm, a, nullptr);
  const Tensor o = attend_cached(heads, positions, a.attention, cache);
  return AttentionLayer::finish(x, o, gate.weight, shift, out.weight, out.bias, nullptr);
}

Tensor Attention::attend_cached(const AttentionLayer::Heads& heads, const Positions& positions,
                                const ops::AttentionOptions& options, KVCache::Layer& cache) const {
  const bool ordered =
      positions.bias.defined() || positions.documents.defined() || options.alibi != 0;
  const KVCache::Layer::Seen seen = cache.append(heads.k, heads.v, ordered);
  const int64_t count = seen.keys.size(1);
  return ops::Attention::forward(
      heads.q, seen.keys, seen.values, {}, of_last_keys(positions.bias, -1, count),
      of_last_keys(positions.documents, 1, count), sink, options, nullptr);
}

Tensor of_last_keys(const Tensor& t, int axis, int64_t count) {
  return t.defined() ? t.narrow(axis, t.size(axis) - count, count) : t;
}

Tensor make_sink(bool learned, bool off_by_one, int64_t heads, DType dtype, Device device) {
  check(!learned || !off_by_one, "attention: a sink is learned, or 0 with off_by_one; not both");
  if (off_by_one) return zeros({heads}, dtype, device);
  return learned ? empty({heads}, dtype, device) : Tensor();
}

int64_t cached_window(const ops::AttentionOptions& o) {
  return o.causal && o.global == 0 && o.prefix == 0 ? o.window.value_or(0) : 0;
}

int64_t Attention::window() const { return cached_window(options_.scores); }

void Attention::visit(Visitor& visitor) {
  visitor.parameter(options_.fused ? "qkv.weight" : "q.weight", q.weight);
  visitor.parameter(options_.fused ? "qkv.bias" : "q.bias", q.bias);
  visitor.parameter("k.weight", k.weight);
  visitor.parameter("k.bias", k.bias);
  visitor.parameter("v.weight", v.weight);
  visitor.parameter("v.bias", v.bias);
  visitor.parameter("q_norm.weight", qk_norm.q.gain);
  visitor.parameter("q_norm.bias", qk_norm.q.shift);
  visitor.parameter("k_norm.weight", qk_norm.k.gain);
  visitor.parameter("k_norm.bias", qk_norm.k.shift);
  visitor.parameter("content_bias", content_bias);
  visitor.parameter("position_bias", position_bias);
  visitor.parameter("relative.weight", relative.weight);
  if (!options_.off_by_one) visitor.parameter("sink", sink);
  visitor.parameter("gate.weight", gate.weight);
  visitor.parameter("shift", shift);
  visitor.parameter("out.weight", out.weight);
  visitor.parameter("out.bias", out.bias);
}

}  // namespace tally::nn
