#include "nn/samples.h"

#include "nn/compositions.h"

namespace tally::nn {
namespace {

void add_gate(std::vector<Sample>& all) {
  using L = AttentionLayer;
  const auto grouped = attention_attrs(4, 2, 2), alone = attention_attrs(2, 2, 3);
  all.push_back(sample<L>("fused, grouped heads, RoPE, a sink and a gate", grouped,
                          {normal({2, 3, 5}, 61), normal({16, 5}, 62), normal({16}, 63), absent(),
                           absent(), absent(), absent(), normal({5, 8}, 64), absent(), angles(3, 2),
                           absent(), absent(), absent(), absent(), absent(), normal({4}, 65),
                           normal({8, 5}, 66), absent(), absent()})
                    .equals(attention_composition(grouped)));
  all.push_back(sample<L>("separate matrices and a gate", alone,
                          {normal({1, 3, 4}, 67), normal({6, 4}, 68), absent(), normal({6, 4}, 69),
                           absent(), normal({6, 4}, 70), absent(), normal({4, 6}, 71),
                           normal({4}, 72), absent(), absent(), absent(), absent(), absent(),
                           absent(), absent(), normal({6, 4}, 73), absent(), absent()})
                    .equals(attention_composition(alone)));
}

void add_documents(std::vector<Sample>& all) {
  using L = AttentionLayer;
  const auto grouped = attention_attrs(4, 2, 2);
  all.push_back(
      sample<L>("fused, RoPE, a gate and a shift", grouped,
                {normal({2, 3, 5}, 74), normal({16, 5}, 75), absent(), absent(), absent(), absent(),
                 absent(), normal({5, 8}, 76), absent(), angles(3, 2), absent(), absent(), absent(),
                 absent(), absent(), absent(), normal({8, 5}, 77), absent(), normal({}, 78)})
          .equals(attention_composition(grouped)));
  all.push_back(sample<L>("fused, RoPE, documents", grouped,
                          {normal({2, 4, 5}, 79), normal({16, 5}, 80), absent(), absent(), absent(),
                           absent(), absent(), normal({5, 8}, 81), absent(), angles(4, 2), absent(),
                           absent(), absent(), absent(), absent(), absent(), absent(),
                           indices({2, 4}, {0, 0, 1, 1, 0, 1, 1, 2}), absent()})
                    .equals(attention_composition(grouped))
                    .bounded());
}

void add_qk_norm(std::vector<Sample>& all) {
  using L = AttentionLayer;
  auto each = attention_attrs(4, 2, 4);
  each.qk_norm = {QKNorm::Width::head, {NormKind::rms_norm, 1e-3, false, NormGain::one_plus_gamma}};
  all.push_back(sample<L>("fused, RMSNorm of each head, RoPE", each,
                          {normal({2, 3, 5}, 21), normal({32, 5}, 22), normal({32}, 23), absent(),
                           absent(), absent(), absent(), normal({5, 16}, 24), absent(),
                           angles(3, 4), absent(), normal({4}, 25), absent(), normal({4}, 26),
                           absent(), absent(), absent(), absent(), absent()})
                    .equals(attention_composition(each)));
  // Turned: without positions a shift of all keys cancels in the softmax, its gradient is 0.
  auto full = attention_attrs(2, 1, 4);
  full.qk_norm = {QKNorm::Width::full, {NormKind::layer_norm, 1e-3, true}};
  all.push_back(sample<L>("fused, LayerNorm of the full width, RoPE", full,
                          {normal({2, 3, 4}, 27), normal({16, 4}, 28), absent(), absent(), absent(),
                           absent(), absent(), normal({4, 8}, 29), normal({4}, 30), angles(3, 4),
                           absent(), normal({8}, 31), normal({8}, 32), normal({4}, 33),
                           normal({4}, 34), absent(), absent(), absent(), absent()})
                    .equals(attention_composition(full)));
  auto bare = attention_attrs(2, 2, 4);
  bare.qk_norm = {QKNorm::Width::head, {NormKind::rms_norm, 1e-3, false, NormGain::none}};
  all.push_back(
      sample<L>("separate matrices, a norm without a gain", bare,
                {normal({1, 3, 4}, 35), normal({8, 4}, 36), absent(), normal({8, 4}, 37), absent(),
                 normal({8, 4}, 38), absent(), normal({4, 8}, 39), absent(), angles(3, 4), absent(),
                 absent(), absent(), absent(), absent(), absent(), absent(), absent(), absent()})
          .equals(attention_composition(bare)));
}

void add_clip(std::vector<Sample>& all) {
  using L = AttentionLayer;
  auto fused = attention_attrs(2, 1, 4), apart = attention_attrs(2, 2, 2);
  fused.clip = 0.8, apart.clip = 1.2;
  fused.qk_norm = {QKNorm::Width::heads, {NormKind::layer_norm, 1e-3}};
  all.push_back(sample<L>("fused, clipped, LayerNorm with a gain for each head, RoPE", fused,
                          {normal({2, 3, 4}, 81), normal({16, 4}, 82), normal({16}, 83), absent(),
                           absent(), absent(), absent(), normal({4, 8}, 84), absent(), angles(3, 4),
                           absent(), normal({2, 4}, 85), absent(), normal({1, 4}, 86), absent(),
                           absent(), absent(), absent(), absent()})
                    .equals(attention_composition(fused)));
  all.push_back(
      sample<L>("separate matrices, clipped", apart,
                {normal({1, 3, 4}, 87), normal({4, 4}, 88), absent(), normal({4, 4}, 89), absent(),
                 normal({4, 4}, 90), absent(), normal({4, 4}, 91), absent(), absent(), absent(),
                 absent(), absent(), absent(), absent(), absent(), absent(), absent(), absent()})
          .equals(attention_composition(apart)));
}

void add_parallel(std::vector<Sample>& all) {
  using L = ParallelLayer;
  L::Attrs gated;
  gated.attention = attention_attrs(4, 2, 2), gated.d_ff = 5;
  all.push_back(sample<L>("gated, grouped heads, RoPE", gated,
                          {normal({2, 3, 5}, 1), normal({26, 5}, 2), absent(), normal({5, 8}, 3),
                           absent(), normal({5, 5}, 4), absent(), angles(3, 2), absent(), absent(),
                           absent(), absent(), absent(), absent()})
                    .equals(parallel_composition(gated)));
  L::Attrs plain;
  plain.attention = attention_attrs(2, 2, 2), plain.d_ff = 3;
  plain.mlp = {ops::ActivationKind::gelu, false};
  all.push_back(
      sample<L>("plain with biases, a bias of the scores", plain,
                {normal({1, 3, 4}, 5), normal({15, 4}, 6), normal({15}, 7), normal({4, 4}, 8),
                 normal({4}, 9), normal({4, 3}, 10), normal({4}, 11), absent(),
                 normal({2, 3, 3}, 12), absent(), absent(), absent(), absent(), absent()})
          .equals(parallel_composition(plain)));
  L::Attrs each = gated;
  each.attention = attention_attrs(2, 1, 4);
  each.attention.qk_norm = {QKNorm::Width::head,
                            {NormKind::rms_norm, 1e-3, false, NormGain::one_plus_gamma}};
  all.push_back(sample<L>("gated, RMSNorm of each head, RoPE", each,
                          {normal({2, 3, 5}, 13), normal({26, 5}, 14), absent(), normal({5, 8}, 15),
                           absent(), normal({5, 5}, 16), absent(), angles(3, 4), absent(),
                           normal({4}, 17), absent(), normal({4}, 18), absent(), absent()})
                    .equals(parallel_composition(each)));
  L::Attrs full = plain;
  full.attention = attention_attrs(2, 1, 4);
  full.attention.qk_norm = {QKNorm::Width::full, {NormKind::layer_norm, 1e-3, true}};
  all.push_back(sample<L>("plain, LayerNorm of the full width, documents", full,
                          {normal({1, 4, 4}, 19), normal({19, 4}, 20), normal({19}, 21),
                           normal({4, 8}, 22), normal({4}, 23), normal({4, 3}, 24), normal({4}, 25),
                           angles(4, 4), absent(), normal({8}, 26), normal({8}, 27),
                           normal({4}, 28), normal({4}, 29), indices({1, 4}, {0, 0, 0, 1})})
                    .equals(parallel_composition(full))
                    .bounded());
}

void add_attention(std::vector<Sample>& all) {
  using L = AttentionLayer;
  const auto grouped = attention_attrs(4, 2, 2), alone = attention_attrs(2, 2, 3);
  all.push_back(
      sample<L>("fused, grouped heads, RoPE", grouped,
                {normal({2, 3, 5}, 1), normal({16, 5}, 2), absent(), absent(), absent(), absent(),
                 absent(), normal({5, 8}, 3), absent(), angles(3, 2), absent(), absent(), absent(),
                 absent(), absent(), absent(), absent(), absent(), absent()})
          .equals(attention_composition(grouped)));
  all.push_back(
      sample<L>("fused with biases, no positions", alone,
                {normal({1, 4, 4}, 4), normal({18, 4}, 5), normal({18}, 6), absent(), absent(),
                 absent(), absent(), normal({4, 6}, 7), normal({4}, 8), absent(), absent(),
                 absent(), absent(), absent(), absent(), absent(), absent(), absent(), absent()})
          .equals(attention_composition(alone)));
  all.push_back(sample<L>("separate matrices, grouped heads, RoPE", grouped,
                          {normal({1, 3, 4}, 9), normal({8, 4}, 10), normal({8}, 11),
                           normal({4, 4}, 12), normal({4}, 13), normal({4, 4}, 14), normal({4}, 15),
                           normal({4, 8}, 16), absent(), angles(3, 2), absent(), absent(), absent(),
                           absent(), absent(), absent(), absent(), absent(), absent()})
                    .equals(attention_composition(grouped)));
  auto far = grouped;
  far.attention.alibi = 1;
  all.push_back(
      sample<L>("fused, grouped heads, ALiBi and a bias of the scores", far,
                {normal({2, 3, 5}, 17), normal({16, 5}, 18), absent(), absent(), absent(), absent(),
                 absent(), normal({5, 8}, 19), absent(), absent(), normal({4, 3, 3}, 20), absent(),
                 absent(), absent(), absent(), absent(), absent(), absent(), absent()})
          .equals(attention_composition(far)));
  add_qk_norm(all);
  add_clip(all);
}

}  // namespace

std::vector<Sample> layer_samples() {
  std::vector<Sample> all;
  add_attention(all);
  add_gate(all);
  add_documents(all);
  add_cross_attention(all);
  add_feed_forward(all);
  add_parallel(all);
  add_layer_grid(all);
  add_modules(all);
  add_stack_modules(all);
  add_recurrent_modules(all);
  add_shared_modules(all);
  return all;
}

}  // namespace tally::nn
