#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/causal_conv1d.h"
#include "core/ops/gated_delta_rule.h"
#include "core/ops/selective_scan.h"

namespace tally::samples {

inline std::vector<Sample> causal_conv1d() {
  using O = ops::CausalConv1d;
  std::vector<Sample> list = {
      sample<O>("width 4, a bias", {},
                {normal({2, 6, 3}, 1), normal({3, 4}, 2), normal({3}, 3), absent()}),
      sample<O>("no bias", {}, {normal({1, 7, 2}, 4), normal({2, 3}, 5), absent(), absent()}),
      sample<O>("width 1", {}, {normal({2, 3, 4}, 6), normal({4, 1}, 7), normal({4}, 8), absent()}),
      sample<O>("fewer tokens than taps", {},
                {normal({2, 2, 3}, 9), normal({3, 5}, 10), absent(), absent()}),
      sample<O>("one token, one channel", {},
                {normal({1, 1, 1}, 11), normal({1, 4}, 12), normal({1}, 13), absent()}),
      sample<O>("no tokens", {},
                {normal({2, 0, 3}, 14), normal({3, 2}, 15), normal({3}, 16), absent()}),
      sample<O>("no sequences", {},
                {normal({0, 4, 3}, 17), normal({3, 2}, 18), absent(), absent()}),
      sample<O>("no channels", {},
                {normal({1, 4, 0}, 19), normal({0, 2}, 20), normal({0}, 21), absent()}),
      sample<O>("extreme values", {},
                {values({1, 3, 2}, {0, 1e15, -1e15, 1e-15, -20, 30}), normal({2, 2}, 25), absent(),
                 absent()})
          .not_smooth(),
      sample<O>("documents", {},
                {normal({2, 7, 3}, 26), normal({3, 4}, 27), normal({3}, 28),
                 indices({2, 7}, {0, 0, 1, 1, 1, 1, 1, 0, 1, 2, 2, 2, 3, 3})})
          .bounded(),
      sample<O>("wide", {},
                {normal({1, 5, 131}, 22), normal({131, 4}, 23), normal({131}, 24), absent()}),
  };
  for (const int64_t taps : {1, 2, 4}) {
    for (const Shape& n : {Shape{1, 1}, {2, 8}, {5, 9}, {9, 17}, {3, 33}}) {
      for (const bool bias : {false, true}) {
        const std::string name = to_text(taps) + " taps, (tokens, channels) " + to_text(n);
        list.push_back(sample<O>(name + (bias ? ", a bias" : ""), {},
                                 {normal({2, n[0], n[1]}, 30), normal({n[1], taps}, 31),
                                  bias ? normal({n[1]}, 32) : absent(), absent()}));
        list.back().derived = true;
      }
    }
  }
  const Sample base =
      sample<O>("3 taps, 2 x 5 x 9", {},
                {normal({2, 5, 9}, 33), normal({9, 3}, 34), normal({9}, 35), absent()});
  add_views(list, base, {Layout::rows_apart}, {0});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

/// Gates of a recurrence: log of a number in 0..1, and one in 0..1.
inline SampleInput gates(const Shape& shape, uint64_t seed, bool logarithm) {
  SampleInput in = normal(shape, seed);
  for (double& v : in.values) {
    const double gate = 1 / (1 + std::exp(-v));
    v = logarithm ? std::log(gate) : gate;
  }
  return in;
}

inline std::vector<Sample> gated_delta_rule() {
  using O = ops::GatedDeltaRule;
  const auto inputs = [](const Shape& rows, int64_t k, int64_t m, uint64_t seed, bool state) {
    return std::vector<SampleInput>{
        normal(rows.append(k), seed),
        normal(rows.append(k), seed + 1, 0.5),
        normal(rows.append(m), seed + 2),
        gates(rows, seed + 3, true),
        gates(rows, seed + 4, false),
        state ? accumulating(normal({rows[0], rows[2], k, m}, seed + 5)) : absent(),
        absent()};
  };
  const auto one = [&](const char* name, const O::Attrs& a, const std::vector<SampleInput>& in) {
    return sample<O>(name, a, {in[0], in[1], in[2], in[3], in[4], in[5], in[6]});
  };
  const auto packed = [&](const char* name, std::vector<SampleInput> in, const SampleInput& ids) {
    in[6] = ids;
    return one(name, {}, in).bounded();
  };
  const SampleInput late = indices({1, 18}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2});
  std::vector<Sample> list = {
      one("2 heads of 4 and 3", {}, inputs({2, 6, 2}, 4, 3, 1, false)),
      one("goes on from a state", {0.7}, inputs({1, 4, 2}, 3, 2, 11, true)),
      one("longer than a chunk", {}, inputs({1, 19, 1}, 3, 2, 21, true)),
      one("one token", {}, inputs({2, 1, 1}, 2, 3, 31, true)),
      one("one number", {}, inputs({1, 3, 1}, 1, 1, 41, false)),
      one("no tokens", {}, inputs({1, 0, 2}, 2, 2, 51, true)),
      one("no sequences", {}, inputs({0, 3, 2}, 2, 2, 61, false)),
      one("a gate of 0 and of 1", {},
          {normal({1, 3, 1, 2}, 71), normal({1, 3, 1, 2}, 72), normal({1, 3, 1, 2}, 73),
           values({1, 3, 1}, {-700, 0, -30}), values({1, 3, 1}, {1, 0, 1}), absent(), absent()})
          .not_smooth(),
      packed("documents", inputs({2, 5, 2}, 3, 2, 91, false),
             indices({2, 5}, {0, 0, 1, 1, 2, 0, 1, 1, 1, 1})),
      packed("a document that begins with a chunk", inputs({1, 18, 1}, 2, 2, 111, false), late),
      packed("documents, of which some began before", inputs({2, 3, 1}, 2, 3, 97, true),
             indices({2, 5}, {0, 0, 0, 1, 1, 0, 0, 1, 1, 1})),
  };
  uint64_t seed = 100;
  for (const bool state : {false, true}) {
    for (const Shape& n : {Shape{1, 1, 1}, {3, 2, 5}, {2, 9, 8}, {17, 3, 2}, {5, 17, 3}}) {
      const std::string name = std::string(state ? "from a state " : "") + to_text(n);
      list.push_back(one(name.c_str(), {0.5}, inputs({1, n[0], 2}, n[1], n[2], seed += 10, state)));
      list.back().derived = true;
    }
  }
  const Sample base = one("2 x 3 x 2", {0.5}, inputs({2, 3, 2}, 3, 5, 81, true));
  add_views(list, base, all_layouts(), {0, 1, 2, 3, 4});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny});
  add_numbers(list, base, {Numbers::zeros}, 1);
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 2);
  return list;
}

inline std::vector<Sample> selective_scan() {
  using O = ops::SelectiveScan;
  const auto inputs = [](int64_t b, int64_t t, int64_t c, int64_t n, uint64_t seed, bool skip,
                         bool state) {
    SampleInput a = gates({c, n}, seed + 2, true);  // negative
    return std::vector<SampleInput>{normal({b, t, c}, seed),
                                    gates({b, t, c}, seed + 1, false),
                                    a,
                                    normal({b, t, n}, seed + 3),
                                    normal({b, t, n}, seed + 4),
                                    skip ? normal({c}, seed + 5) : absent(),
                                    state ? accumulating(normal({b, c, n}, seed + 6)) : absent(),
                                    absent()};
  };
  const auto one = [&](const char* name, const std::vector<SampleInput>& in) {
    return sample<O>(name, {}, {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]});
  };
  const auto packed = [&](const char* name, std::vector<SampleInput> in, const SampleInput& ids) {
    in[7] = ids;
    return one(name, in).bounded();
  };
  const SampleInput late = indices({1, 18}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2});
  std::vector<Sample> list = {
      one("4 channels of 3", inputs(2, 6, 4, 3, 1, true, false)),
      one("goes on from a state", inputs(1, 5, 3, 2, 11, false, true)),
      one("longer than a chunk", inputs(1, 18, 2, 2, 21, true, true)),
      one("one token", inputs(2, 1, 2, 3, 31, true, true)),
      one("one number", inputs(1, 3, 1, 1, 41, false, false)),
      one("no tokens", inputs(1, 0, 2, 2, 51, true, true)),
      one("no sequences", inputs(0, 3, 2, 2, 61, true, false)),
      one("steps of 0 and of 1000",
          {normal({1, 3, 1}, 71), values({1, 3, 1}, {0, 1000, 1e-6}), values({1, 2}, {-1, -1e-3}),
           normal({1, 3, 2}, 72), normal({1, 3, 2}, 73), absent(), absent(), absent()})
          .not_smooth(),
      packed("documents", inputs(2, 5, 3, 2, 91, true, false),
             indices({2, 5}, {0, 0, 1, 1, 2, 0, 1, 1, 1, 1})),
      packed("a document that begins with a chunk", inputs(1, 18, 2, 2, 111, false, false), late),
      packed("documents, of which some began before", inputs(2, 3, 2, 3, 98, false, true),
             indices({2, 5}, {0, 0, 0, 1, 1, 0, 0, 1, 1, 1})),
  };
  uint64_t seed = 100;
  for (const bool state : {false, true}) {
    for (const bool skip : {false, true}) {
      for (const Shape& n : {Shape{1, 1, 1}, {3, 2, 5}, {2, 9, 8}, {17, 3, 2}, {5, 17, 1}}) {
        const std::string name =
            std::string(state ? "from a state " : "") + (skip ? "with a skip " : "") + to_text(n);
        list.push_back(one(name.c_str(), inputs(2, n[0], n[1], n[2], seed += 10, skip, state)));
        list.back().derived = true;
      }
    }
  }
  const Sample base = one("2 x 3, 5 channels of 3", inputs(2, 3, 5, 3, 81, true, true));
  add_views(list, base, all_layouts(), {0, 1, 3, 4});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 3);
  return list;
}

}  // namespace tally::samples
