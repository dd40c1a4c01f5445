#pragma once
#include <algorithm>

#include "autograd/samples/grid.h"
#include "core/ops/expert_combine.h"
#include "core/ops/expert_gather.h"
#include "core/ops/expert_linear.h"

namespace tally::samples {

inline std::vector<Sample> expert_gather() {
  using O = ops::ExpertGather;
  std::vector<Sample> list = {
      sample<O>("5 tokens, 2 of 4 experts", {4}, {normal({5, 3}, 1), indices({5, 2}, 2, 4)}),
      sample<O>("a batch of 2 x 3, 1 of 3", {3}, {normal({2, 3, 4}, 3), indices({2, 3, 1}, 4, 3)}),
      sample<O>("all to one of 3", {3}, {normal({3, 2}, 5), indices({3, 1}, {2, 2, 2})}),
      sample<O>("one token, three choices", {3}, {normal({5}, 6), indices({3}, {2, 0, 1})}),
      sample<O>("one expert", {1}, {normal({3, 2}, 7), indices({3, 1}, {0, 0, 0})}),
      sample<O>("no tokens", {4}, {normal({0, 3}, 8), indices({0, 2}, {})}),
      sample<O>("no choices", {4}, {normal({3, 3}, 9), indices({3, 0}, {})}),
      sample<O>("no width", {2}, {normal({2, 0}, 10), indices({2, 1}, {1, 0})}),
      sample<O>("wide rows", {5}, {normal({4, 131}, 11), indices({4, 2}, 12, 5)}),
      sample<O>("extreme values", {2},
                {values({2, 2}, {0, 1e30, -1e30, -20}), indices({2, 1}, {1, 0})}),
  };
  for (const int64_t experts : {1, 2, 5}) {
    for (const int64_t width : {1, 8, 9, 33}) {
      const int64_t k = std::min<int64_t>(experts, 2);
      const auto seed = static_cast<uint64_t>(100 * experts + width);
      list.push_back(sample<O>(to_text(k) + " of " + to_text(experts) + ", width " + to_text(width),
                               {experts},
                               {normal({7, width}, seed), indices({7, k}, seed + 1, experts)}));
    }
  }
  const Sample base = sample<O>("5 x 9, 2 of 4", {4}, {normal({5, 9}, 13), indices({5, 2}, 14, 4)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  return list;
}

/// Rows to experts, as many to each as fits; the last takes the rest.
inline SampleInput even_offsets(int64_t experts, int64_t rows) {
  std::vector<double> at;
  for (int64_t e = 0; e < experts; ++e) at.push_back(static_cast<double>(e * rows / experts));
  at.push_back(static_cast<double>(rows));
  return indices({experts + 1}, at);
}

inline std::vector<Sample> expert_linear() {
  using O = ops::ExpertLinear;
  std::vector<Sample> list = {
      sample<O>(
          "3 experts, a bias", {},
          {normal({6, 4}, 1), normal({3, 5, 4}, 2), normal({3, 5}, 3), indices({4}, {0, 2, 3, 6})}),
      sample<O>("no bias", {},
                {normal({5, 3}, 4), normal({2, 4, 3}, 5), absent(), indices({3}, {0, 4, 5})}),
      sample<O>("experts without rows", {},
                {normal({3, 2}, 6), normal({4, 3, 2}, 7), normal({4, 3}, 8),
                 indices({5}, {0, 0, 2, 2, 3})})
          .bounded(),
      sample<O>("one token, 2 of 5 experts", {},
                {normal({2, 3}, 23), normal({5, 4, 3}, 24), normal({5, 4}, 25),
                 indices({6}, {0, 0, 1, 1, 2, 2})}),
      sample<O>(
          "one expert, one row", {},
          {normal({1, 1}, 9), normal({1, 1, 1}, 10), normal({1, 1}, 11), indices({2}, {0, 1})}),
      sample<O>(
          "no rows", {},
          {normal({0, 3}, 12), normal({2, 4, 3}, 13), normal({2, 4}, 14), indices({3}, {0, 0, 0})}),
      sample<O>(
          "no inputs", {},
          {normal({3, 0}, 15), normal({2, 4, 0}, 16), normal({2, 4}, 17), indices({3}, {0, 1, 3})}),
      sample<O>("no outputs", {},
                {normal({3, 4}, 18), normal({2, 0, 4}, 19), absent(), indices({3}, {0, 1, 3})}),
      sample<O>("wide rows", {},
                {normal({7, 65}, 20), normal({2, 19, 65}, 21), absent(), indices({3}, {0, 5, 7})}),
      sample<O>("extreme values", {},
                {values({2, 2}, {0, 1e15, -1e15, -20}), normal({2, 3, 2}, 22), absent(),
                 indices({3}, {0, 1, 2})})
          .not_smooth(),
  };
  for (const Shape& n : {Shape{1, 9, 17}, {2, 1, 9}, {5, 8, 1}, {3, 17, 16}}) {
    for (const bool bias : {false, true}) {
      const std::string name = "(outputs, inputs) of experts " + to_text(n);
      list.push_back(
          sample<O>(name + (bias ? " with bias" : ""), {},
                    {normal({6, n[2]}, 30), normal({n[0], n[1], n[2]}, 31),
                     bias ? normal({n[0], n[1]}, 32) : absent(), even_offsets(n[0], 6)}));
    }
  }
  const Sample base = sample<O>(
      "2 experts of 9 x 5", {},
      {normal({6, 5}, 33), normal({2, 9, 5}, 34), normal({2, 9}, 35), even_offsets(2, 6)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

inline std::vector<Sample> expert_combine() {
  using O = ops::ExpertCombine;
  std::vector<Sample> list = {
      sample<O>("3 tokens, 2 choices", {},
                {normal({6, 4}, 1), normal({3, 2}, 2), indices({3, 2}, {4, 0, 1, 5, 3, 2})}),
      sample<O>("a batch of 2 x 2, 1 choice", {},
                {normal({4, 3}, 3), normal({2, 2, 1}, 4), indices({2, 2, 1}, {3, 1, 0, 2})}),
      sample<O>(
          "extreme values", {},
          {values({2, 2}, {0, 1e15, -1e15, -20}), normal({1, 2}, 40), indices({1, 2}, {1, 0})})
          .not_smooth(),
      sample<O>("one token, one choice", {},
                {normal({1, 1}, 5), normal({1}, 6), indices({1}, {0})}),
      sample<O>("rows that repeat and rows left out", {},
                {normal({4, 3}, 15), normal({3, 2}, 16), indices({3, 2}, {1, 1, 3, 1, 0, 3})}),
      sample<O>("no tokens", {}, {normal({0, 3}, 7), normal({0, 2}, 8), indices({0, 2}, {})}),
      sample<O>("no choices", {}, {normal({0, 3}, 9), normal({2, 0}, 10), indices({2, 0}, {})}),
      sample<O>("no width", {}, {normal({2, 0}, 11), normal({2, 1}, 12), indices({2, 1}, {1, 0})}),
      sample<O>("wide rows", {},
                {normal({6, 131}, 13), normal({2, 3}, 14), indices({2, 3}, {5, 3, 1, 0, 2, 4})}),
  };
  for (const int64_t k : {1, 2, 3}) {
    for (const int64_t width : {1, 8, 9, 33}) {
      const auto seed = static_cast<uint64_t>(100 * k + width);
      list.push_back(sample<O>(
          to_text(k) + " choices of width " + to_text(width), {},
          {normal({7, width}, seed), normal({5, k}, seed + 1), indices({5, k}, seed + 2, 7)}));
    }
  }
  const Sample base =
      sample<O>("2 choices of width 9", {},
                {normal({6, 9}, 17), normal({3, 2}, 18), indices({3, 2}, {4, 0, 1, 5, 3, 2})});
  add_views(list, base, row_layouts(), {0, 1});
  add_numbers(list, base, {Numbers::zeros, Numbers::tiny, Numbers::large});
  add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
  return list;
}

}  // namespace tally::samples
