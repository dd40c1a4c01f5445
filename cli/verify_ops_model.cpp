// Recorded cases of activations, gates, feed-forward layers, norms, embeddings and clipping, by the
// name that the record uses.
#include "autograd/functional.h"
#include "cli/verify_ops.h"
#include "core/ops/clip.h"

namespace tally::cli {
namespace {

using C = OpCase;
using K = ops::ActivationKind;

OpOutputs only(const Tensor& y) { return {{"y", y}}; }

// Activations

template <K kind>
OpOutputs act(const C& c) {
  return only(activation(c.in("x"), kind));
}
OpOutputs quick_gelu(const C& c) { return only(activation(c.in("x"), K::swish, 1.702)); }
OpOutputs elu_alpha(const C& c) { return only(activation(c.in("x"), K::elu, c.number("alpha"))); }
OpOutputs capped(const C& c) {
  return only(soft_cap(c.in("x"), c.has("cap") ? c.number("cap") : 30));
}
/// beta is learned: a scalar, or one a channel.
OpOutputs swish_beta(const C& c) { return only(learned_swish(c.in("x"), c.in("beta"))); }
OpOutputs xielu_case(const C& c) {
  return only(xielu(c.in("x"), c.in("ap"), c.in("an"), c.number("b"), c.number("eps")));
}

// Gates and feed-forward layers

template <K kind>
OpOutputs gated(const C& c) {
  return only(gate(c.in("gate"), c.in("up"), kind));
}
/// gpt-oss: gate and up are kept within a limit, and 1 is added to up.
OpOutputs swiglu_clamped(const C& c) {
  const double limit = c.number("limit");
  const Tensor g = clamp(c.in("gate"), -INFINITY, limit), u = clamp(c.in("up"), -limit, limit);
  return only(gate(g, add(u, 1), K::swish, c.number("alpha")));
}
template <K kind>
OpOutputs plain_ffn(const C& c) {
  const Tensor h = activation(linear(c.in("x"), c.in("w1"), c.maybe("b1")), kind);
  return only(linear(h, c.in("w2"), c.maybe("b2")));
}
template <K kind>
OpOutputs gated_ffn(const C& c) {
  const Tensor g = linear(c.in("x"), c.in("w1"), c.maybe("b1"));
  const Tensor up = linear(c.in("x"), c.in("w3"), c.maybe("b3"));
  return only(linear(gate(g, up, kind), c.in("w2"), c.maybe("b2")));
}

// Norms and the blocks that differ by where they stand

template <bool unit_offset>
OpOutputs layernorm(const C& c) {
  return only(
      layer_norm(c.in("x"), c.maybe("weight"), c.maybe("bias"), c.number("eps"), unit_offset));
}
template <bool unit_offset>
OpOutputs rmsnorm(const C& c) {
  return only(rms_norm(c.in("x"), c.maybe("weight"), c.number("eps"), unit_offset));
}
OpOutputs rmsnorm_gated(const C& c) {
  const Tensor normed = rms_norm(c.in("x"), c.in("weight"), c.number("eps"));
  return only(gate(c.in("gate"), normed, K::silu));
}
/// x / sqrt(sum(x^2) + eps)
OpOutputs l2norm(const C& c) {
  const double d = static_cast<double>(c.in("x").size(-1));
  return only(scale(rms_norm(c.in("x"), {}, c.number("eps") / d), 1 / std::sqrt(d)));
}
OpOutputs scalenorm(const C& c) {
  const Tensor length = maximum(norm(c.in("x"), {-1}, true), c.constant(c.number("eps")));
  return only(mul(c.in("g"), div(c.in("x"), length)));
}
/// One weight row a head: x (B,T,H,K), weight (H,K).
OpOutputs per_head(const C& c) {
  return only(mul(layer_norm(c.in("x"), {}, {}, c.number("eps")), c.in("weight")));
}
OpOutputs prenorm(const C& c) {
  const Tensor n = rms_norm(c.in("x"), c.in("weight"), c.number("eps"));
  return only(add(c.in("x"), matmul(n, c.in("w"))));
}
OpOutputs postnorm(const C& c) {
  const Tensor sum = add(c.in("x"), matmul(c.in("x"), c.in("w")));
  return only(layer_norm(sum, c.in("weight"), c.in("bias"), c.number("eps")));
}
OpOutputs reordered(const C& c) {
  const Tensor branch = matmul(c.in("x"), c.in("w"));
  return only(add(c.in("x"), rms_norm(branch, c.in("weight"), c.number("eps"))));
}
OpOutputs double_norm(const C& c) {
  const Tensor branch = matmul(rms_norm(c.in("x"), c.in("w1"), c.number("eps")), c.in("w"));
  return only(add(c.in("x"), rms_norm(branch, c.in("w2"), c.number("eps"))));
}

// Embeddings

OpOutputs look_up(const C& c) {
  const double factor = c.has("scale") ? c.number("scale") : 1;
  return only(embedding(c.in("ids"), c.in("table"), factor,
                        c.has("padding_idx") ? c.integer("padding_idx") : -1));
}
OpOutputs with_positions(const C& c) {
  const int64_t offset = c.integer("offset"), length = c.in("ids").size(-1);
  return only(add(embedding(c.in("ids"), c.in("tok")), narrow(c.in("pos"), 0, offset, length)));
}
OpOutputs tied(const C& c) {
  const Tensor h = rms_norm(embedding(c.in("ids"), c.in("table")), {}, c.number("eps"));
  return only(linear(h, c.in("table")));
}

// Training

/// The norm over all gradients: of order 2 by the op that training uses, 1 and infinity composed.
OpOutputs clip_norm(const C& c) {
  std::vector<Tensor> gradients;
  for (const auto& [name, g] : c.inputs) gradients.push_back(g);
  const double max_norm = c.number("max_norm");
  Tensor total, factor;
  if (c.attributes["ord"] == 2.0) {
    const auto r = ops::clip_global_norm(gradients, max_norm);
    total = to(r.norm, c.dtype);
    factor = r.factor;
  } else {
    total = c.constant(0, {1});
    for (const Tensor& g : gradients) {
      if (c.attributes["ord"] == 1.0)
        total = add(total, sum(abs(g)));
      else
        total = maximum(total, amax(abs(g)));
    }
    factor = clamp(scale(reciprocal(add(total, 1e-6)), max_norm), 0, 1);
  }
  OpOutputs out{{"total", reshape(total, {})}};
  for (const auto& [name, g] : c.inputs) out[name] = mul(g, factor);
  return out;
}
OpOutputs clip_value(const C& c) {
  return only(clamp(c.in("g"), -c.number("value"), c.number("value")));
}
/// With the recorded mask; our own is drawn from the generator.
OpOutputs masked_dropout(const C& c) {
  return only(where(c.in("keep"), scale(c.in("x"), 1 / (1 - c.number("p"))), c.constant(0)));
}
OpOutputs accumulated(const C& c) {
  const Tensor counts = to(c.in("counts"), c.dtype);
  return {{"token_mean", div(sum(mul(c.in("losses"), counts)), sum(counts))},
          {"naive", mean(c.in("losses"))}};
}

void add_activations(OpTable& t) {
  t["relu"] = act<K::relu>;
  t["relu2"] = act<K::squared_relu>;
  t["gelu_erf"] = act<K::gelu>;
  t["gelu_tanh"] = act<K::gelu_tanh>;
  t["silu"] = act<K::silu>;
  t["sigmoid"] = act<K::sigmoid>;
  t["tanh"] = act<K::tanh>;
  t["elu"] = act<K::elu>;
  t["selu"] = act<K::selu>;
  t["softplus"] = act<K::softplus>;
  t["quick_gelu"] = quick_gelu;
  t["elu_alpha"] = elu_alpha;
  t["softcap"] = capped;
  t["swish_beta"] = t["swish_beta_channel"] = swish_beta;
  t["xielu"] = xielu_case;
}
void add_gates(OpTable& t) {
  t["glu"] = gated<K::sigmoid>;
  t["bilinear"] = gated<K::identity>;
  t["reglu"] = gated<K::relu>;
  t["geglu_erf"] = gated<K::gelu>;
  t["geglu_tanh"] = gated<K::gelu_tanh>;
  t["swiglu"] = gated<K::silu>;
  t["swiglu_clamped"] = swiglu_clamped;
  t["ffn_glu"] = gated_ffn<K::sigmoid>;
  t["ffn_bilinear"] = gated_ffn<K::identity>;
  t["ffn_reglu"] = gated_ffn<K::relu>;
  t["ffn_geglu_erf"] = gated_ffn<K::gelu>;
  t["ffn_geglu_tanh"] = gated_ffn<K::gelu_tanh>;
  t["ffn_swiglu"] = gated_ffn<K::silu>;
  t["ffn_relu"] = plain_ffn<K::relu>;
  t["ffn_relu2"] = plain_ffn<K::squared_relu>;
  t["ffn_gelu_erf"] = plain_ffn<K::gelu>;
  t["ffn_gelu_tanh"] = plain_ffn<K::gelu_tanh>;
  t["ffn_silu"] = plain_ffn<K::silu>;
}
void add_norms(OpTable& t) {
  t["layernorm"] = layernorm<false>;
  t["layernorm1p"] = layernorm<true>;
  t["rmsnorm"] = t["qk_norm_full"] = t["qk_norm_head"] = rmsnorm<false>;
  t["rmsnorm_1p"] = rmsnorm<true>;
  t["rmsnorm_gated"] = rmsnorm_gated;
  t["l2norm"] = l2norm;
  t["scalenorm"] = scalenorm;
  t["qk_layernorm_per_head"] = per_head;
  t["prenorm_block"] = prenorm;
  t["postnorm_block"] = postnorm;
  t["reordered_norm_block"] = reordered;
  t["double_norm_block"] = double_norm;
}

}  // namespace

void add_model_ops(OpTable& t) {
  add_activations(t);
  add_gates(t);
  add_norms(t);
  t["embedding"] = look_up;
  t["embedding_sum"] = with_positions;
  t["embedding_tied"] = tied;
  t["clip_grad_norm"] = clip_norm;
  t["clip_grad_value"] = clip_value;
  t["dropout"] = masked_dropout;
  t["grad_accumulation"] = accumulated;
}

}  // namespace tally::cli
