#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/cross_entropy.h"

namespace tally::samples {

/// Every option of a loss with every other.
struct LossChoice {
  std::string name;
  ops::LossOptions options;
  bool bounded;  // targets decide what it costs
};
inline std::vector<LossChoice> loss_choices() {
  std::vector<LossChoice> all;
  for (const auto reduction : {ops::Reduction::mean, ops::Reduction::sum, ops::Reduction::none}) {
    for (int bits = 0; bits < 16; ++bits) {
      LossChoice c{
          "options " + to_text(bits) + " of reduction " + to_text(static_cast<int>(reduction)),
          {},
          (bits & 8) != 0};
      c.options.reduction = reduction;
      c.options.label_smoothing = bits & 1 ? 0.2 : 0;
      c.options.z_loss = bits & 2 ? 0.1 : 0;
      if (bits & 4) c.options.soft_cap = 1.5;
      if (bits & 8) c.options.ignore_index = 3;
      all.push_back(c);
    }
  }
  return all;
}

inline std::vector<Sample> cross_entropy() {
  using O = ops::CrossEntropy;
  O::Attrs mean, sum, none, all, shared, largest, every;
  sum.reduction = ops::Reduction::sum;
  none.reduction = ops::Reduction::none;
  none.label_smoothing = 0.1;
  all.label_smoothing = 0.3;
  all.z_loss = 0.01;
  all.soft_cap = 2;
  all.ignore_index = 2;
  largest.max_z_loss = 0.05;
  every = all;
  every.max_z_loss = 0.02, every.ignore_index = -100, every.reduction = ops::Reduction::none;
  shared.normalizer = 11;
  shared.z_loss = 1e-4;
  std::vector<Sample> list = {
      sample<O>("mean of 4 rows of 5", mean, {normal({4, 5}, 1), indices({4}, 2, 5)}),
      sample<O>("sum over a batch of 2 x 3 rows", sum,
                {normal({2, 3, 4}, 3), indices({2, 3}, 4, 4)}),
      sample<O>("a loss a row, smoothed", none, {normal({2, 3, 4}, 5), indices({2, 3}, 6, 4)}),
      sample<O>("smoothing, z-loss and soft cap, a class that is ignored", all,
                {normal({4, 5}, 7, 2), indices({4}, {0, 2, 4, 1})})
          .bounded(),
      sample<O>("smoothing, z-loss and soft cap", all,
                {normal({3, 5}, 8, 2), indices({3}, {0, 4, 1})}),
      sample<O>("max-z loss", largest, {normal({3, 5}, 15, 2), indices({3}, {0, 4, 1})}),
      sample<O>("max-z loss, the first of equal logits", largest,
                {values({2, 3}, {1, 2, 2, -3, -3, -3}), indices({2}, {0, 1})})
          .not_smooth(),
      sample<O>("max-z loss beside all others, a loss a row", every,
                {normal({2, 2, 6}, 16, 2), indices({2, 2}, {0, 4, 1, 5})}),
      sample<O>("a share of a larger mean", shared, {normal({3, 6}, 9), indices({3}, {0, 5, 2})}),
      sample<O>("nothing counts", mean, {normal({2, 3}, 10), indices({2}, {-100, -100})}).bounded(),
      sample<O>("no rows", mean, {normal({0, 5}, 11), indices({0}, std::vector<double>{})}),
      sample<O>("one class", mean, {normal({2, 1}, 12), indices({2}, {0, 0})}),
      sample<O>("logits in the thousands", sum,
                {values({3, 3}, {1000, 0, -1000, 1000, 0, -1000, 1e4, 9999, -1e4}),
                 indices({3}, {0, 2, 1})})
          .not_smooth(),
      sample<O>("wide rows", mean, {normal({3, 131}, 13), indices({3}, 14, 131)}),
  };
  uint64_t seed = 100;
  for (const LossChoice& c : loss_choices()) {
    list.push_back(
        sample<O>(c.name, c.options, {normal({4, 9}, ++seed), indices({4}, {0, 3, 8, 3})}));
    list.back().bounded_cost = c.bounded;
    list.back().derived = true;
  }
  for (const auto& a : {mean, none}) {
    const std::string what = a.reduction == ops::Reduction::mean ? "mean " : "each ";
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t from) {
      return sample<O>(what + of, a, {normal(s, from), indices(s.drop_last(), from + 1, s[-1])});
    });
  }
  const Sample base = sample<O>("3 x 9", {}, {normal({3, 9}, 15), indices({3}, {8, 0, 4})});
  add_views(list, base, row_layouts(), {0});
  add_numbers(list, base, all_numbers());
  return list;
}

}  // namespace tally::samples
