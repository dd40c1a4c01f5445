#include "nn/parallel.h"

namespace tally::nn {
namespace {

AttentionLayer::Heads heads_in(const Tensor& y, const AttentionLayer::Attrs& a) {
  const int64_t h = a.heads, g = a.kv_heads, d = a.head_dim;
  return {heads_of(y, 0, h, d), heads_of(y, h, g, d), heads_of(y, h + g, g, d)};
}
/// Branch 0 or 1 of the feed-forward layer in a product of all.
Tensor branch_in(const Tensor& y, const ParallelLayer::Attrs& a, int64_t which) {
  return y.narrow(-1, a.attention_rows() + which * a.d_ff, a.d_ff);
}

}  // namespace

Tensor ParallelLayer::project(const Tensor& x, const Tensor& w_in, const Tensor& b_in,
                              const Tensor& table, const QKNorm::Weights& norm, const Attrs& a,
                              AttentionLayer::Heads& heads, Saved* s) {
  check_defined(name, "x", x);
  check_defined(name, "the weight of the input", w_in);
  check(x.ndim() == 3, "parallel_layer: x must be (B, T, D); got ", x.shape(), in_module());
  check(w_in.ndim() == 2 && w_in.size(0) == a.rows(),
        "parallel_layer: the weight of the input must have ", a.rows(),
        " rows [q | k | v | gate | up] for H = ", a.attention.heads, ", G = ", a.attention.kv_heads,
        ", K = ", a.attention.head_dim, ", F = ", a.d_ff, "; got ", w_in.shape(), in_module());
  Tensor y = ops::Linear::forward(x, w_in, b_in, {}, s ? &s->in : nullptr);
  heads = heads_in(y, a.attention);
  heads.q = QKNorm::forward(heads.q, norm.q, a.attention.qk_norm, s ? &s->q_norm : nullptr);
  heads.k = QKNorm::forward(heads.k, norm.k, a.attention.qk_norm, s ? &s->k_norm : nullptr);
  if (table.defined()) {
    ops::Rope::turn(heads.q, table, {}, a.attention.rope, heads.q);
    ops::Rope::turn(heads.k, table, {}, a.attention.rope, heads.k);
  }
  return y;
}

Tensor ParallelLayer::finish(const Tensor& projected, const Tensor& o, const Tensor& w_out,
                             const Tensor& b_out, const Tensor& w_down, const Tensor& b_down,
                             const Attrs& a, Saved* s) {
  const Tensor rows = o.reshape({o.size(0), o.size(1), o.size(2) * o.size(3)});
  Tensor y = ops::Linear::forward(rows, w_out, b_out, {}, s ? &s->out : nullptr);
  const FeedForwardLayer::Attrs& m = a.mlp;
  const Tensor first = branch_in(projected, a, 0);
  Tensor h;
  if (m.gated)
    h = ops::Gate::forward(first, branch_in(projected, a, 1),
                           {m.activation, m.parameter, m.limit, m.offset},
                           s ? &s->gating : nullptr);
  else
    h = ops::Activation::forward(first, {m.activation, m.parameter}, s ? &s->activation : nullptr);
  check(w_down.defined() && w_down.shape() == Shape{y.size(-1), a.d_ff},
        "parallel_layer: the weight of down must be (D, F) with D = ", y.size(-1), ", F = ", a.d_ff,
        "; got ", w_down.defined() ? w_down.shape() : Shape{}, in_module());
  check(!b_down.defined() || b_down.shape() == Shape{y.size(-1)},
        "parallel_layer: the bias of down must be (D) with D = ", y.size(-1), "; got ",
        b_down.defined() ? b_down.shape() : Shape{}, in_module());
  check_same_dtype(name, y, w_down, b_down);
  run(y.device(), ops::Linear::Forward{h, w_down, b_down, GradTensor(y, true)});
  if (s) s->down = {h, w_down, b_down.defined()};
  return y;
}

Tensor ParallelLayer::forward(const Tensor& x, const Tensor& w_in, const Tensor& b_in,
                              const Tensor& w_out, const Tensor& b_out, const Tensor& w_down,
                              const Tensor& b_down, const Tensor& table, const Tensor& bias,
                              const Tensor& q_gain, const Tensor& q_shift, const Tensor& k_gain,
                              const Tensor& k_shift, const Tensor& documents, const Attrs& a,
                              Saved* s) {
  AttentionLayer::Heads heads;
  const Tensor projected =
      project(x, w_in, b_in, table, {{q_gain, q_shift}, {k_gain, k_shift}}, a, heads, s);
  const Tensor o = ops::Attention::forward(heads.q, heads.k, heads.v, {}, bias, documents, {},
                                           a.attention.attention, s ? &s->attention : nullptr);
  heads = {};
  if (s) s->table = table, s->attrs = a;
  return finish(projected, o, w_out, b_out, w_down, b_down, a, s);
}

std::array<Tensor, 14> ParallelLayer::backward(const Tensor& dy, Saved&& s, const Into<14>& into) {
  const Attrs a = s.attrs;
  check_defined(name, "the gradient of the output", dy);
  check(dy.ndim() == 3, "parallel_layer: the gradient of the output must be (B, T, D); got ",
        dy.shape(), in_module());
  const int64_t b = dy.size(0), t = dy.size(1);
  // One buffer [dq | dk | dv | dgate | dup]: each part is written in its place.
  const Tensor all = empty({b, t, a.rows()}, dy.dtype(), dy.device());
  auto [dh, dw_down, db_down] = ops::Linear::backward(dy, std::move(s.down), into.pick(-1, 5, 6));
  s.down = {};
  const auto place = [&](int64_t which) { return branch_in(all, a, which); };
  if (a.mlp.gated) {
    Into<2> parts;
    parts.target = {place(0), place(1)}, parts.overwrite = {true, true};
    ops::Gate::backward(dh, std::move(s.gating), parts);
  } else {
    Into<1> part;
    part.target = {place(0)}, part.overwrite = {true};
    ops::Activation::backward(dh, std::move(s.activation), part);
  }
  s.gating = {}, s.activation = {};
  dh = Tensor();
  auto [d_o, dw_out, db_out] = ops::Linear::backward(dy, std::move(s.out), into.pick(-1, 3, 4));
  s.out = {};
  const AttentionLayer::Heads d = heads_in(all, a.attention);
  // Behind a norm stand tensors of their own: the norm's backward fills those in front of it.
  Tensor dq = d.q, dk = d.k;
  if (a.attention.qk_norm.width != QKNorm::Width::none)
    dq = empty(d.q.shape(), dy.dtype(), dy.device()),
    dk = empty(d.k.shape(), dy.dtype(), dy.device());
  const GradTensor dbias = into.at(8, s.attention.bias);
  ops::Attention::backward_to(d_o.reshape({b, t, a.attention.heads, a.attention.head_dim}),
                              std::move(s.attention), {dq, false}, {dk, false}, {d.v, false},
                              dbias);
  d_o = Tensor();
  if (s.table.defined()) {
    ops::Rope::turn_back(dq, s.table, {}, a.attention.rope, {dq, false});
    ops::Rope::turn_back(dk, s.table, {}, a.attention.rope, {dk, false});
  }
  const auto [dq_gain, dq_shift] =
      QKNorm::backward(dq, d.q, std::move(s.q_norm), a.attention.qk_norm, into.pick(9, 10));
  const auto [dk_gain, dk_shift] =
      QKNorm::backward(dk, d.k, std::move(s.k_norm), a.attention.qk_norm, into.pick(11, 12));
  auto [dx, dw_in, db_in] = ops::Linear::backward(all, std::move(s.in), into.pick(0, 1, 2));
  return {dx,       dw_in, db_in,   dw_out,   db_out,  dw_down,  db_down,
          Tensor(), dbias, dq_gain, dq_shift, dk_gain, dk_shift, Tensor()};
}

}  // namespace tally::nn
