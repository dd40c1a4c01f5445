#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/attention/attention.h"

namespace tally::samples {

inline std::vector<Sample> attention() {
  using O = ops::Attention;
  const auto input = [](const Shape& s, uint64_t seed) { return normal(s, seed); };
  const O::Attrs full{false, {}, {}, {}, {}}, causal;
  O::Attrs window, capped, scaled, dropped, gone, everything;
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
  SampleInput padding = indices({2, 1, 1, 5}, {1, 1, 1, 0, 0, 0, 0, 0, 1, 1});
  padding.dtype = DType::u8;
  return {
      sample<O>("causal, a key head for each query head", causal,
                {input({2, 3, 2, 4}, 1), input({2, 3, 2, 4}, 2), input({2, 3, 2, 4}, 3), absent()}),
      sample<O>("all keys, grouped heads, more queries than keys", full,
                {input({1, 4, 4, 3}, 4), input({1, 3, 2, 3}, 5), input({1, 3, 2, 3}, 6), absent()}),
      sample<O>("window of 3, one key head", window,
                {input({1, 6, 2, 2}, 7), input({1, 6, 1, 2}, 8), input({1, 6, 1, 2}, 9), absent()}),
      sample<O>(
          "behind a cache that the window leaves in part", window,
          {input({1, 2, 2, 3}, 10), input({1, 7, 2, 3}, 11), input({1, 7, 2, 3}, 12), absent()}),
      sample<O>(
          "one token against a cache", causal,
          {input({2, 1, 2, 4}, 13), input({2, 5, 1, 4}, 14), input({2, 5, 1, 4}, 15), absent()}),
      sample<O>(
          "soft cap and window", capped,
          {input({1, 5, 2, 3}, 16), input({1, 5, 1, 3}, 17), input({1, 5, 1, 3}, 18), absent()}),
      sample<O>(
          "scale, values of another size", scaled,
          {input({1, 4, 2, 3}, 19), input({1, 4, 2, 3}, 20), input({1, 4, 2, 5}, 21), absent()}),
      sample<O>(
          "dropout and soft cap", dropped,
          {input({2, 4, 2, 3}, 22), input({2, 4, 1, 3}, 23), input({2, 4, 1, 3}, 24), absent()}),
      sample<O>(
          "dropout of everything", gone,
          {input({1, 3, 1, 2}, 25), input({1, 3, 1, 2}, 26), input({1, 3, 1, 2}, 27), absent()}),
      sample<O>("mask with rows that see nothing", full,
                {input({2, 3, 2, 4}, 28), input({2, 3, 1, 4}, 29), input({2, 3, 1, 4}, 30), mask})
          .bounded(),
      sample<O>(
          "padded keys under a causal mask", causal,
          {input({2, 5, 1, 2}, 31), input({2, 5, 1, 2}, 32), input({2, 5, 1, 2}, 33), padding})
          .bounded(),
      sample<O>(
          "no keys", full,
          {input({1, 2, 2, 3}, 34), input({1, 0, 1, 3}, 35), input({1, 0, 1, 3}, 36), absent()}),
      sample<O>(
          "no tokens", causal,
          {input({2, 0, 2, 3}, 37), input({2, 3, 1, 3}, 38), input({2, 3, 1, 3}, 39), absent()}),
      sample<O>(
          "one token, one element", causal,
          {input({1, 1, 1, 1}, 40), input({1, 1, 1, 1}, 41), input({1, 1, 1, 1}, 42), absent()}),
      sample<O>("scores in the hundreds", causal,
                {normal({1, 4, 1, 3}, 43, 20), normal({1, 4, 1, 3}, 44, 20),
                 input({1, 4, 1, 3}, 45), absent()})
          .not_smooth(),
      sample<O>(
          "blocks and remainders of fast kernels", window,
          {input({1, 37, 2, 9}, 46), input({1, 41, 1, 9}, 47), input({1, 41, 1, 9}, 48), absent()})
          .not_smooth(),
      sample<O>("several chunks of queries and blocks of keys", causal,
                {input({1, 270, 2, 3}, 49), input({1, 290, 1, 3}, 50), input({1, 290, 1, 2}, 51),
                 absent()})
          .not_smooth(),
      sample<O>("mask, cap and dropout over several blocks", everything,
                {input({2, 20, 2, 3}, 52), input({2, 130, 1, 3}, 53), input({2, 130, 1, 3}, 54),
                 random_mask})
          .bounded()
          .not_smooth(),
  };
}

}  // namespace tally::samples
