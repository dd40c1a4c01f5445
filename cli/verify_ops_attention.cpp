// Recorded cases of attention and the layers around it, by the name that the record uses. Records
// keep heads before tokens (B,H,T,K); ours are (B,T,H,K), and a transposed view serves.
#include "autograd/functional.h"
#include "cli/verify_ops.h"
#include "core/ops/position.h"
#include "nn/latent_attention.h"

namespace tally::cli {
namespace {

using C = OpCase;
using ops::RotaryPairs;

OpOutputs only(const Tensor& y) { return {{"y", y}}; }
Tensor swap_heads(const Tensor& x) { return transpose(x, 1, 2); }

ops::AttentionOptions options_of(const C& c) {
  ops::AttentionOptions o;
  o.causal = c.has("causal") ? c.flag("causal") : true;
  if (c.has("window")) o.window = c.integer("window");
  if (c.has("softcap")) o.soft_cap = c.number("softcap");
  if (c.has("scale")) o.scale = c.number("scale");
  if (c.has("alibi")) o.alibi = 1;
  if (c.has("prefix")) o.prefix = c.integer("prefix");
  return o;
}

OpOutputs attention_case(const C& c) {
  const Tensor mask = c.maybe("mask").defined() ? c.in("mask") : c.maybe("key_mask");
  return only(
      swap_heads(attention(swap_heads(c.in("q")), swap_heads(c.in("k")), swap_heads(c.in("v")),
                           options_of(c), mask, c.maybe("bias"), {}, c.maybe("sink"))));
}

Tensor table(const C& c, int64_t positions, int64_t size, double base = 10000) {
  return rope_table(positions, size, base, c.dtype, c.device);
}

/// Projections, optional norm of each head, rope, causal attention, projection.
OpOutputs gqa_layer(const C& c) {
  const Tensor& x = c.in("x");
  const int64_t b = x.size(0), t = x.size(1), size = c.integer("head_dim");
  const auto heads = [&](const char* weight, int64_t n, const char* norm) {
    const Tensor h = reshape(linear(x, c.in(weight)), {b, t, n, size});
    return c.maybe(norm).defined() ? rms_norm(h, c.in(norm), c.number("qk_norm_eps")) : h;
  };
  const Tensor turns = table(c, t, size);
  const ops::Rope::Attrs form{
      c.text("rope") == "interleaved" ? RotaryPairs::interleaved : RotaryPairs::half_split, 0};
  const Tensor q = rope(heads("wq", c.integer("heads"), "qn"), turns, form);
  const Tensor k = rope(heads("wk", c.integer("kv_heads"), "kn"), turns, form);
  const Tensor y = attention(q, k, heads("wv", c.integer("kv_heads"), ""), options_of(c));
  return only(linear(reshape(y, {b, t, -1}), c.in("wo")));
}

/// DeepSeek's latent attention with the weights of the case.
OpOutputs mla_layer(const C& c) {
  const Tensor& x = c.in("x");
  const bool ranked = !c.maybe("w_q").defined();
  nn::LatentAttentionOptions o;
  o.d_model = x.size(2);
  o.heads = c.integer("heads");
  o.kv_lora_rank = c.integer("kv_lora_rank");
  o.q_lora_rank = ranked ? c.in("w_qa").size(0) : 0;
  o.qk_nope_head_dim = c.integer("qk_nope_head_dim");
  o.qk_rope_head_dim = c.integer("qk_rope_head_dim");
  o.v_head_dim = c.integer("v_head_dim");
  nn::LatentAttention layer(o, x.dtype(), kMeta);  // its own weights are not used
  layer.q = ranked ? c.in("w_qb") : c.in("w_q");
  if (ranked) layer.q_down = c.in("w_qa"), layer.q_norm.weight = c.in("q_norm");
  layer.kv_down = c.in("w_kva");
  layer.kv_norm.weight = c.in("kv_norm");
  layer.kv_up = c.in("w_kvb");
  layer.out = c.in("wo");
  nn::Positions positions;
  positions.table = table(c, x.size(1), o.qk_rope_head_dim);
  return only(layer.forward(x, positions));
}

// Blocks: one head with q = k = v = x wa, and gelu(x w1) w2.

Tensor block_attention(const C& c, const Tensor& x) {
  const Tensor h = matmul(x, c.in("wa"));
  const Tensor one = reshape(h, {h.size(0), h.size(1), 1, h.size(2)});
  return reshape(attention(one, one, one), h.shape());
}
Tensor block_mlp(const C& c, const Tensor& x) {
  return matmul(activation(matmul(x, c.in("w1")), ops::ActivationKind::gelu), c.in("w2"));
}
OpOutputs block_serial(const C& c) {
  const Tensor h = add(c.in("x"), block_attention(c, layer_norm(c.in("x"), c.in("n1"))));
  return only(add(h, block_mlp(c, layer_norm(h, c.in("n2")))));
}
OpOutputs block_parallel(const C& c) {
  const Tensor n = layer_norm(c.in("x"), c.in("n1"));
  return only(add(c.in("x"), add(block_attention(c, n), block_mlp(c, n))));
}
OpOutputs block_parallel2(const C& c) {
  const Tensor a = layer_norm(c.in("x"), c.in("n1")), m = layer_norm(c.in("x"), c.in("n2"));
  return only(add(c.in("x"), add(block_attention(c, a), block_mlp(c, m))));
}

}  // namespace

void add_attention_ops(OpTable& table) {
  table["attention"] = attention_case;
  table["block_parallel"] = block_parallel;
  table["block_parallel2"] = block_parallel2;
  table["block_serial"] = block_serial;
  table["gqa_layer"] = gqa_layer;
  table["mla_layer"] = mla_layer;
}

}  // namespace tally::cli
