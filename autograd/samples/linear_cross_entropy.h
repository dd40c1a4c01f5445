#pragma once
#include "autograd/proof/sample.h"
#include "core/ops/cross_entropy.h"
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
  return {
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
}

}  // namespace tally::samples
