#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/attention/attention.h"

namespace tally::samples {

inline std::vector<Sample> attention() {
  using O = ops::Attention;
  const auto input = [](const Shape& s, uint64_t seed) { return normal(s, seed); };
  // Without documents and sink; further ones: attention_keys.h.
  const auto plain = [](std::string name, const O::Attrs& a, const SampleInput(&in)[5]) {
    return sample<O>(std::move(name), a, {in[0], in[1], in[2], in[3], in[4], absent(), absent()});
  };
  const O::Attrs causal;
  O::Attrs full, window, capped, scaled, dropped, gone, everything;
  full.causal = false;
  window.window = 3;
  capped.soft_cap = 1.5;
  capped.window = 2;
  scaled.scale = 0.3;
  dropped.dropout = {0.4, 7, 3};
  dropped.soft_cap = 2;
  gone.dropout = {1, 7, 3};
  SampleInput mask = indices({2, 1, 3, 3}, {1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1});
  mask.dtype = DType::u8;
  SampleInput random_mask = indices({2, 1, 20, 130}, 55, 2);
  random_mask.dtype = DType::u8;
  everything.soft_cap = 3;
  everything.dropout = {0.2, 5, 6};
  O::Attrs alibi, alibi_both = full, hidden_bias;
  alibi.alibi = 1;
  alibi_both.alibi = 0.5;
  hidden_bias.soft_cap = 2;
  hidden_bias.dropout = {0.3, 8, 9};
  SampleInput padding = indices({2, 1, 1, 5}, {1, 1, 1, 0, 0, 0, 0, 0, 1, 1});
  padding.dtype = DType::u8;
  return {
      plain("causal, a key head for each query head", causal,
            {input({2, 3, 2, 4}, 1), input({2, 3, 2, 4}, 2), input({2, 3, 2, 4}, 3), absent(),
             absent()}),
      plain("all keys, grouped heads, more queries than keys", full,
            {input({1, 4, 4, 3}, 4), input({1, 3, 2, 3}, 5), input({1, 3, 2, 3}, 6), absent(),
             absent()}),
      plain("window of 3, one key head", window,
            {input({1, 6, 2, 2}, 7), input({1, 6, 1, 2}, 8), input({1, 6, 1, 2}, 9), absent(),
             absent()}),
      plain("behind a cache that the window leaves in part", window,
            {input({1, 2, 2, 3}, 10), input({1, 7, 2, 3}, 11), input({1, 7, 2, 3}, 12), absent(),
             absent()}),
      plain("one token against a cache", causal,
            {input({2, 1, 2, 4}, 13), input({2, 5, 1, 4}, 14), input({2, 5, 1, 4}, 15), absent(),
             absent()}),
      plain("soft cap and window", capped,
            {input({1, 5, 2, 3}, 16), input({1, 5, 1, 3}, 17), input({1, 5, 1, 3}, 18), absent(),
             absent()}),
      plain("scale, values of another size", scaled,
            {input({1, 4, 2, 3}, 19), input({1, 4, 2, 3}, 20), input({1, 4, 2, 5}, 21), absent(),
             absent()}),
      plain("dropout and soft cap", dropped,
            {input({2, 4, 2, 3}, 22), input({2, 4, 1, 3}, 23), input({2, 4, 1, 3}, 24), absent(),
             absent()}),
      plain("dropout of everything", gone,
            {input({1, 3, 1, 2}, 25), input({1, 3, 1, 2}, 26), input({1, 3, 1, 2}, 27), absent(),
             absent()}),
      plain("mask with rows that see nothing", full,
            {input({2, 3, 2, 4}, 28), input({2, 3, 1, 4}, 29), input({2, 3, 1, 4}, 30), mask,
             absent()})
          .bounded(),
      plain("padded keys under a causal mask", causal,
            {input({2, 5, 1, 2}, 31), input({2, 5, 1, 2}, 32), input({2, 5, 1, 2}, 33), padding,
             absent()})
          .bounded(),
      plain("no keys", full,
            {input({1, 2, 2, 3}, 34), input({1, 0, 1, 3}, 35), input({1, 0, 1, 3}, 36), absent(),
             absent()}),
      plain("no tokens", causal,
            {input({2, 0, 2, 3}, 37), input({2, 3, 1, 3}, 38), input({2, 3, 1, 3}, 39), absent(),
             absent()}),
      plain("one token, one element", causal,
            {input({1, 1, 1, 1}, 40), input({1, 1, 1, 1}, 41), input({1, 1, 1, 1}, 42), absent(),
             absent()}),
      plain("scores in the hundreds", causal,
            {normal({1, 4, 1, 3}, 43, 20), normal({1, 4, 1, 3}, 44, 20), input({1, 4, 1, 3}, 45),
             absent(), absent()})
          .not_smooth(),
      plain("blocks and remainders of fast kernels", window,
            {input({1, 37, 2, 9}, 46), input({1, 41, 1, 9}, 47), input({1, 41, 1, 9}, 48), absent(),
             absent()})
          .not_smooth(),
      plain("several chunks of queries and blocks of keys", causal,
            {input({1, 270, 2, 3}, 49), input({1, 290, 1, 3}, 50), input({1, 290, 1, 2}, 51),
             absent(), absent()})
          .not_smooth(),
      plain("mask, cap and dropout over several blocks", everything,
            {input({2, 20, 2, 3}, 52), input({2, 130, 1, 3}, 53), input({2, 130, 1, 3}, 54),
             random_mask, absent()})
          .bounded()
          .not_smooth(),
      plain("bias of each head that the batches share, grouped heads", causal,
            {input({2, 3, 4, 2}, 55), input({2, 4, 2, 2}, 56), input({2, 4, 2, 2}, 57), absent(),
             input({4, 3, 4}, 58)}),
      plain("bias of every batch and head, all keys", full,
            {input({2, 3, 2, 3}, 59), input({2, 4, 1, 3}, 60), input({2, 4, 1, 2}, 61), absent(),
             input({2, 2, 3, 4}, 62)}),
      plain("bias of keys alone", window,
            {input({1, 4, 2, 2}, 63), input({1, 6, 1, 2}, 64), input({1, 6, 1, 2}, 65), absent(),
             input({6}, 66)}),
      // Added to all scores of a row, a bias changes nothing: no slope for differences to find.
      plain("bias of queries alone, in each batch", causal,
            {input({2, 3, 2, 2}, 67), input({2, 4, 1, 2}, 68), input({2, 4, 1, 2}, 69), absent(),
             input({2, 1, 3, 1}, 70)})
          .not_smooth(),
      plain("one number for a bias", causal,
            {input({1, 2, 1, 2}, 71), input({1, 2, 1, 2}, 72), input({1, 2, 1, 2}, 73), absent(),
             input({1}, 74)})
          .not_smooth(),
      plain("bias, soft cap and dropout", hidden_bias,
            {input({2, 3, 2, 2}, 75), input({2, 3, 1, 2}, 76), input({2, 3, 1, 2}, 77), absent(),
             input({2, 3, 3}, 78)}),
      plain("bias under a mask", full,
            {input({2, 3, 2, 4}, 79), input({2, 3, 1, 4}, 80), input({2, 3, 1, 4}, 81), mask,
             input({2, 3, 3}, 82)})
          .bounded(),
      plain("bias without keys", full,
            {input({1, 2, 2, 3}, 83), input({1, 0, 1, 3}, 84), input({1, 0, 1, 3}, 85), absent(),
             input({2, 2, 0}, 86)}),
      plain("ALiBi, three heads behind a cache", alibi,
            {input({2, 2, 3, 2}, 87), input({2, 5, 1, 2}, 88), input({2, 5, 1, 2}, 89), absent(),
             absent()}),
      plain("half of ALiBi in both directions, with a bias", alibi_both,
            {input({1, 4, 2, 3}, 90), input({1, 3, 2, 3}, 91), input({1, 3, 2, 3}, 92), absent(),
             input({1, 2, 4, 3}, 93)}),
      plain("bias and ALiBi over several blocks and chunks", alibi,
            {input({2, 270, 2, 3}, 94), input({2, 290, 1, 3}, 95), input({2, 290, 1, 2}, 96),
             absent(), input({2, 270, 290}, 97)})
          .not_smooth(),
  };
}

}  // namespace tally::samples
