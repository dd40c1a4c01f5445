#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/expert_combine.h"
#include "core/ops/expert_gather.h"
#include "core/ops/expert_linear.h"

namespace tally::samples {

inline std::vector<Sample> expert_gather() {
  using O = ops::ExpertGather;
  return {
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
}

inline std::vector<Sample> expert_linear() {
  using O = ops::ExpertLinear;
  return {
      sample<O>(
          "3 experts, a bias", {},
          {normal({6, 4}, 1), normal({3, 5, 4}, 2), normal({3, 5}, 3), indices({4}, {0, 2, 3, 6})}),
      sample<O>("no bias", {},
                {normal({5, 3}, 4), normal({2, 4, 3}, 5), absent(), indices({3}, {0, 4, 5})}),
      sample<O>("experts without rows", {},
                {normal({3, 2}, 6), normal({4, 3, 2}, 7), normal({4, 3}, 8),
                 indices({5}, {0, 0, 2, 2, 3})})
          .bounded(),
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
}

inline std::vector<Sample> expert_combine() {
  using O = ops::ExpertCombine;
  return {
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
}

}  // namespace tally::samples
