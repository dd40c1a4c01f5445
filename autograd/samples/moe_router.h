#pragma once
#include <algorithm>

#include "autograd/samples/grid.h"
#include "core/ops/load_balance_loss.h"
#include "core/ops/moe_router.h"

namespace tally::samples {

inline std::vector<Sample> moe_router() {
  using O = ops::MoeRouter;
  using S = ops::RouterScore;
  O::Attrs two, plain, scaled, sigmoid, raw_sigmoid, best, deep;
  plain.renormalise = false;
  scaled.k = 3, scaled.scale = 2.5;
  sigmoid.score = raw_sigmoid.score = S::sigmoid;
  raw_sigmoid.renormalise = false;
  raw_sigmoid.scale = 0.5;
  best = plain;
  best.groups = 3, best.kept_groups = 2;
  deep = sigmoid;
  deep.k = 3, deep.scale = 2.5, deep.groups = 4, deep.kept_groups = 2, deep.best_of_group = 2;
  O::Attrs one = plain, all = two;
  one.k = 1;
  all.k = 5;
  const SampleInput bias = constant(normal({8}, 20, 0.1));
  std::vector<Sample> list = {
      sample<O>("2 of 5, renormalised", two, {normal({4, 5}, 1), absent()}),
      sample<O>("2 of 5, batch of 2 x 3", plain, {normal({2, 3, 5}, 2), absent()}),
      sample<O>("3 of 7, scaled", scaled, {normal({3, 7}, 3), absent()}),
      sample<O>("sigmoid, renormalised", sigmoid, {normal({3, 6}, 4), absent()}),
      sample<O>("sigmoid, scaled", raw_sigmoid, {normal({3, 6}, 5), absent()}),
      sample<O>("2 of 3 groups", best, {normal({5, 9}, 6), absent()}),
      sample<O>("2 of 4 groups by their best two, a bias", deep, {normal({5, 8}, 7), bias}),
      sample<O>("a bias alone", plain, {normal({5, 8}, 8), bias}),
      sample<O>("1 of 4: a switch", one, {normal({3, 4}, 9), absent()}),
      sample<O>("all of 5", all, {normal({2, 5}, 10), absent()}),
      sample<O>("one expert", one, {normal({3, 1}, 11), absent()}),
      sample<O>("no rows", two, {normal({0, 4}, 12), absent()}),
      sample<O>("one token without a batch", two, {normal({4}, 13), absent()}),
      sample<O>("a wide row", scaled, {normal({2, 131}, 14), absent()}),
      sample<O>("large logits", two, {values({2, 3}, {1e4, 9990, -1e4, -700, 700, 0}), absent()})
          .not_smooth(),
      sample<O>("sigmoids that underflow", sigmoid,
                {values({2, 3}, {-80, -90, -100, -20, 30, 0}), absent()})
          .not_smooth(),
  };
  // Each score, renormalised or not, scaled or not, with and without a bias, over three choices.
  uint64_t seed = 100;
  for (int options = 0; options < 16; ++options) {
    for (const int64_t k : {1, 2, 8}) {
      O::Attrs a;
      a.k = k;
      a.score = options & 1 ? S::sigmoid : S::softmax;
      a.renormalise = (options & 2) != 0;
      a.scale = options & 4 ? 2.5 : 1;
      list.push_back(sample<O>("options " + to_text(options) + ", " + to_text(k) + " of 8", a,
                               {normal({3, 8}, ++seed), options & 8 ? bias : absent()}));
      list.back().derived = true;
    }
  }
  for (const int64_t experts : {1, 2, 7, 9, 17, 33}) {
    O::Attrs a;
    a.k = std::min<int64_t>(experts, 2);
    list.push_back(sample<O>("2 of " + to_text(experts) + " and less", a,
                             {normal({2, experts}, ++seed), absent()}));
    list.back().derived = true;
  }
  const Sample base = sample<O>("2 of 9", plain, {normal({3, 9}, 15), absent()});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, {Numbers::tiny, Numbers::large, Numbers::outlier});
  return list;
}

inline std::vector<Sample> load_balance_loss() {
  using O = ops::LoadBalanceLoss;
  std::vector<Sample> list = {
      sample<O>("6 tokens, 2 of 4 experts", {}, {normal({6, 4}, 1), indices({6, 2}, 2, 4)}),
      sample<O>("a batch, 1 of 5", {}, {normal({2, 3, 5}, 3), indices({2, 3, 1}, 4, 5)}),
      sample<O>("all choose one", {}, {normal({3, 3}, 5), indices({3, 1}, {1, 1, 1})}),
      sample<O>("one expert", {}, {normal({4, 1}, 6), indices({4, 1}, {0, 0, 0, 0})}),
      sample<O>("one token", {}, {normal({5}, 7), indices({3}, {0, 4, 2})}),
      sample<O>("a wide row", {}, {normal({2, 37}, 9), indices({2, 3}, 10, 37)}),
      sample<O>("no tokens", {}, {normal({0, 3}, 8), indices({0, 2}, {})}),
      sample<O>("large logits", {},
                {values({2, 3}, {1e4, 0, -1e4, 700, 700, -700}), indices({2, 1}, {0, 1})})
          .not_smooth(),
  };
  for (const int64_t experts : {1, 2, 8, 9, 33}) {
    for (const int64_t rows : {1, 3, 9}) {
      const auto seed = static_cast<uint64_t>(100 * rows + experts);
      list.push_back(
          sample<O>(to_text(rows) + " tokens, " + to_text(experts) + " experts", {},
                    {normal({rows, experts}, seed), indices({rows, 1}, seed + 1, experts)}));
      list.back().derived = true;
    }
  }
  const Sample base = sample<O>("4 x 9", {}, {normal({4, 9}, 11), indices({4, 2}, 12, 9)});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base,
              {Numbers::zeros, Numbers::equal, Numbers::tiny, Numbers::outlier, Numbers::steps});
  return list;
}

}  // namespace tally::samples
