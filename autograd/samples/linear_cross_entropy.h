#pragma once
#include "autograd/samples/cross_entropy.h"
#include "core/ops/linear.h"
#include "core/ops/linear_cross_entropy.h"

namespace tally::samples {

inline std::vector<Sample> linear_cross_entropy() {
  using O = ops::LinearCrossEntropy;
  O::Attrs mean, sum, all, shared, largest;
  sum.reduction = ops::Reduction::sum;
  all.label_smoothing = 0.2;
  all.z_loss = 0.01;
  all.soft_cap = 3;
  largest.max_z_loss = 0.05;
  shared.normalizer = 9;
  shared.z_loss = 1e-3;
  const auto fused = [](const char* name, const O::Attrs& a, const SampleInput(&in)[3]) {
    return sample<O>(name, a, in).equals([a](const Sample::Tensors& t) {
      const Tensor logits = apply<ops::Linear>({}, t[0], t[1], Tensor());
      return Sample::Tensors{apply<ops::CrossEntropy>(a, logits, t[2])[0]};
    });
  };
  std::vector<Sample> list = {
      fused("mean of 4 rows", mean, {normal({4, 3}, 1), normal({5, 3}, 2), indices({4}, 3, 5)}),
      fused("sum over a batch of 2 x 3 rows", sum,
            {normal({2, 3, 4}, 4), normal({6, 4}, 5), indices({2, 3}, 6, 6)}),
      fused("smoothing, z-loss, soft cap", all,
            {normal({3, 4}, 7), normal({5, 4}, 8), indices({3}, 9, 5)}),
      fused("ignored targets", all,
            {normal({4, 3}, 10), normal({5, 3}, 11), indices({4}, {-100, 3, 0, -100})})
          .bounded(),
      fused("max-z loss", largest,
            {normal({4, 3}, 26), normal({5, 3}, 27), indices({4}, {4, 0, 2, 2})}),
      fused("a share of a larger mean", shared,
            {normal({3, 2}, 12), normal({4, 2}, 13), indices({3}, {0, 3, 2})}),
      fused("nothing counts", mean,
            {normal({2, 3}, 14), normal({4, 3}, 15), indices({2}, {-100, -100})})
          .bounded(),
      fused("no rows", mean,
            {normal({0, 3}, 16), normal({4, 3}, 17), indices({0}, std::vector<double>{})}),
      fused("wide", mean, {normal({5, 17}, 18), normal({67, 17}, 19), indices({5}, 20, 67)}),
      fused("one row of width one", mean,
            {normal({1, 1}, 24), normal({3, 1}, 25), indices({1}, {2})}),
      fused("several blocks of rows", sum,
            {normal({300, 2}, 21), normal({3, 2}, 22), indices({300}, 23, 3)})
          .not_smooth(),
  };
  uint64_t seed = 100;
  for (const LossChoice& c : loss_choices()) {
    if (c.options.reduction == ops::Reduction::none) continue;
    list.push_back(
        fused(c.name.c_str(), c.options,
              {normal({4, 3}, ++seed), normal({9, 3}, ++seed), indices({4}, {0, 3, 8, 3})}));
    list.back().bounded_cost = c.bounded;
    list.back().derived = true;
  }
  for (const Shape& n :
       {Shape{1, 1, 1}, {1, 9, 17}, {3, 8, 16}, {9, 2, 33}, {17, 33, 2}, {3, 1, 65}}) {
    const std::string name = "(rows, width, classes) " + to_text(n);
    list.push_back(fused(name.c_str(), mean,
                         {normal({n[0], n[1]}, ++seed), normal({n[2], n[1]}, ++seed),
                          indices({n[0]}, ++seed, n[2])}));
    list.back().derived = true;
  }
  const Sample base = fused("3 x 5, 9 classes", mean,
                            {normal({3, 5}, 26), normal({9, 5}, 27), indices({3}, {8, 0, 4})});
  add_views(list, base, row_layouts(), {0});
  add_views(list, base, {Layout::rows_apart, Layout::every_second_row}, {1});
  add_numbers(list, base, {Numbers::zeros, Numbers::equal, Numbers::tiny, Numbers::outlier});
  return list;
}

}  // namespace tally::samples
