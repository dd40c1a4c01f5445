#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/attention/attention.h"

namespace tally::samples {

// Products of what attention can do: every choice of keys under everything that changes a score;
// sizes around the tiles of its kernels.

struct AttentionSize {
  int64_t b = 1, t = 1, s = 1, h = 1, g = 1, k = 2, m = 2;
};

/// What changes a score, one thing at a time.
enum class ScoreChange : uint8_t { none, soft_cap, alibi, dropout, bias, sink, documents, mask };
constexpr const char* kScoreChanges[] = {"plain", "soft cap", "ALiBi",     "dropout",
                                         "bias",  "sink",     "documents", "mask"};
constexpr int kScoreChangeCount = 8;

inline std::vector<std::pair<std::string, ops::Attention::Attrs>> key_choices() {
  using Pattern = ops::KeyPattern;
  ops::Attention::Attrs causal, full, window, two_sided, strided, fixed, global, prefix;
  full.causal = false;
  window.window = 2;
  two_sided.window = 2, two_sided.causal = false;
  strided.pattern = Pattern::strided, strided.stride = 2;
  fixed.pattern = Pattern::fixed, fixed.stride = 3, fixed.summary = 1;
  global.window = 1, global.global = 1;
  prefix.prefix = 2;
  return {
      {"causal", causal},   {"full", full},   {"window", window}, {"two-sided window", two_sided},
      {"strided", strided}, {"fixed", fixed}, {"global", global}, {"prefix", prefix}};
}

inline Sample attention_of(const std::string& name, ops::Attention::Attrs a, const AttentionSize& z,
                           ScoreChange change, uint64_t seed) {
  SampleInput mask = absent(), bias = absent(), documents = absent(), sink = absent();
  if (change == ScoreChange::soft_cap) a.soft_cap = 1.5;
  if (change == ScoreChange::alibi) a.alibi = 1;
  if (change == ScoreChange::dropout) a.dropout = {0.3, seed, 2};
  if (change == ScoreChange::bias) bias = normal({z.h, z.t, z.s}, seed + 3);
  if (change == ScoreChange::sink) sink = normal({z.h}, seed + 4);
  if (change == ScoreChange::documents) {
    documents = indices({z.b, z.s}, seed + 5, 1);
    for (size_t i = 0; i < documents.values.size(); ++i)
      documents.values[i] = static_cast<double>(i % static_cast<size_t>(z.s) >= 2);
  }
  if (change == ScoreChange::mask) {
    mask = indices({z.b, 1, z.t, z.s}, seed + 6, 2);
    mask.dtype = DType::u8;
  }
  Sample s = sample<ops::Attention>(
      name, a,
      {normal({z.b, z.t, z.h, z.k}, seed), normal({z.b, z.s, z.g, z.k}, seed + 1),
       normal({z.b, z.s, z.g, z.m}, seed + 2), mask, bias, documents, sink});
  // What a mask and documents hide costs nothing: declared is a bound.
  s.bounded_cost = change == ScoreChange::documents || change == ScoreChange::mask;
  s.derived = true;
  return s;
}

inline std::vector<Sample> attention_grid() {
  std::vector<Sample> list;
  uint64_t seed = 1000;
  const AttentionSize square{1, 5, 5, 2, 1, 3, 2}, cached{2, 2, 6, 2, 2, 2, 3},
      query{1, 1, 7, 4, 2, 3, 3};
  const auto choices = key_choices();
  for (const auto& [keys, attrs] : choices) {
    for (int c = 0; c < kScoreChangeCount; ++c) {
      const auto change = static_cast<ScoreChange>(c);
      const std::string name = keys + ", " + kScoreChanges[c];
      list.push_back(attention_of(name, attrs, square, change, seed += 10));
      list.push_back(attention_of(name + ", behind a cache", attrs, cached, change, seed += 10));
      list.push_back(attention_of(name + ", one query", attrs, query, change, seed += 10));
    }
  }
  // (tokens, keys, head, values) around vectors and tiles.
  for (const Shape& n : {Shape{1, 1, 1, 9},
                         {2, 2, 8, 8},
                         {9, 9, 9, 1},
                         {1, 17, 16, 16},
                         {14, 14, 2, 17},
                         {3, 57, 2, 2},
                         {17, 19, 3, 3},
                         {33, 33, 1, 1}}) {
    const AttentionSize z{1, n[0], n[1], 2, 1, n[2], n[3]};
    for (const size_t keys : {0, 1, 2}) {
      const auto& [name, attrs] = choices[keys];
      list.push_back(
          attention_of(name + " " + to_text(n), attrs, z, ScoreChange::none, seed += 10));
    }
  }
  const Sample base = attention_of("3 x 4 tokens", {}, {2, 3, 4, 2, 1, 3, 2}, ScoreChange::bias, 1);
  add_views(list, base, all_layouts(), {0, 1, 2});
  for (const size_t input : {size_t{0}, size_t{1}, size_t{2}})
    add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::steps}, input);
  add_numbers(list, base, {Numbers::outlier, Numbers::large}, 2);
  return list;
}

}  // namespace tally::samples
