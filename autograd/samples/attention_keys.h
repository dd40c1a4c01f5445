#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/attention/attention.h"

namespace tally::samples {

/// Attention over a choice of keys, over documents, and with a sink.
inline std::vector<Sample> attention_keys() {
  using O = ops::Attention;
  using Pattern = ops::KeyPattern;
  struct Size {
    int64_t b = 1, t = 1, s = 1, h = 1, g = 1, k = 2, m = 2;
  };
  uint64_t seed = 200;
  const auto one = [&](const char* name, const O::Attrs& a, const Size& z, const SampleInput& bias,
                       const SampleInput& documents, const SampleInput& sink) {
    seed += 4;
    return sample<O>(name, a,
                     {normal({z.b, z.t, z.h, z.k}, seed), normal({z.b, z.s, z.g, z.k}, seed + 1),
                      normal({z.b, z.s, z.g, z.m}, seed + 2), absent(), bias, documents, sink});
  };
  const auto keys = [&](const char* name, const O::Attrs& a, const Size& z) {
    return one(name, a, z, absent(), absent(), absent());
  };
  const auto sunk = [&](const char* name, const O::Attrs& a, const Size& z) {
    return one(name, a, z, absent(), absent(), normal({z.h}, seed + 300));
  };
  O::Attrs causal, full, strided, fixed, global, two_sided, prefix, mixed;
  full.causal = false;
  strided.pattern = Pattern::strided, strided.stride = 3;
  fixed.pattern = Pattern::fixed, fixed.stride = 4, fixed.summary = 2;
  global.window = 2, global.global = 2;
  two_sided = global, two_sided.causal = false;
  prefix.prefix = 3;
  mixed = strided, mixed.global = 1, mixed.prefix = 2, mixed.soft_cap = 2;
  mixed.dropout = {0.3, 8, 9};
  O::Attrs far_strided = strided, far_fixed = fixed, far_window = two_sided;
  far_strided.stride = 60, far_strided.global = 3;
  far_fixed.stride = 50, far_fixed.summary = 5;
  far_window.window = 40;
  const SampleInput two_documents = indices({2, 6}, {0, 0, 0, 0, 1, 1, 5, 4, 4, 4, 4, 5});
  std::vector<double> many;
  for (int i = 0; i < 290; ++i) many.push_back(i / 70);
  const SampleInput packed = indices({1, 290}, many);
  const Size small{1, 7, 7, 2, 1, 2, 3}, cached{2, 3, 9, 2, 2, 3, 2}, far{1, 270, 290, 2, 1, 3, 2};
  return {
      keys("strided keys", strided, small),
      keys("strided keys behind a cache", strided, cached),
      keys("fixed blocks with summaries", fixed, small),
      keys("fixed blocks behind a cache", fixed, cached),
      keys("global tokens and a window", global, small),
      keys("global tokens and a window to both sides", two_sided, small),
      keys("a prefix that all see", prefix, small),
      keys("strided, global, prefix, soft cap and dropout", mixed, cached),
      keys("one query of strided keys behind a cache", strided, {1, 1, 11, 4, 2, 3, 3}),
      keys("strided keys over several blocks", far_strided, far).not_smooth(),
      keys("fixed blocks over several blocks of keys", far_fixed, far).not_smooth(),
      keys("a window to both sides over several blocks", far_window, far).not_smooth(),
      one("documents", causal, {2, 6, 6, 2, 1, 2, 2}, absent(), two_documents, absent()).bounded(),
      one("documents, all directions, behind a cache, with a sink", full, {2, 4, 6, 2, 1, 2, 2},
          absent(), two_documents, normal({2}, 150))
          .bounded(),
      one("documents over several blocks", causal, far, absent(), packed, absent())
          .bounded()
          .not_smooth(),
      sunk("a sink of each head", causal, {2, 3, 4, 4, 2, 2, 3}),
      sunk("a sink, window and one query", global, {1, 1, 5, 2, 1, 3, 2}),
      sunk("a sink without keys", full, {1, 2, 0, 2, 1, 2, 2}),
      sunk("a sink without tokens", causal, {1, 0, 3, 2, 1, 2, 2}),
      one("a sink and a bias over several blocks", far_fixed, far, normal({270, 290}, 151),
          absent(), normal({2}, 152, 3))
          .not_smooth(),
  };
}

}  // namespace tally::samples
