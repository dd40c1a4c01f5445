#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/gate.h"

namespace tally::samples {

inline std::vector<Sample> gate() {
  using O = ops::Gate;
  using K = ops::ActivationKind;
  std::vector<Sample> list;
  for (K kind : {K::identity, K::relu, K::gelu, K::gelu_tanh, K::silu, K::sigmoid}) {
    const std::string name = ops::kActivationNames[static_cast<int>(kind)];
    const auto seed = 10 * static_cast<uint64_t>(kind);
    list.push_back(sample<O>(name + ", two tensors", {kind},
                             {normal({3, 5}, seed), normal({3, 5}, seed + 1)}));
    list.push_back(sample<O>(name + ", fused", {kind}, {normal({2, 2, 6}, seed + 2), absent()}));
  }
  list.push_back(sample<O>("one row", {K::silu}, {normal({9}, 1), normal({9}, 2)}));
  list.push_back(sample<O>("one row, fused", {K::silu}, {normal({18}, 3), absent()}));
  list.push_back(sample<O>("limits and an offset, as gpt-oss", {K::swish, 1.702, 0.9, 1},
                           {normal({4, 6}, 11, 2), normal({4, 6}, 12, 2)}));
  list.push_back(
      sample<O>("limits, fused", {K::gelu, 1, 0.7, 0}, {normal({3, 8}, 13, 2), absent()}));
  list.push_back(
      sample<O>("an offset alone", {K::silu, 1, 0, 1}, {normal({3, 5}, 14), normal({3, 5}, 15)}));
  list.push_back(sample<O>("one element", {K::silu}, {normal({1}, 10), normal({1}, 11)}));
  list.push_back(sample<O>("columns of one", {K::gelu}, {normal({3, 2}, 12), absent()}));
  list.push_back(sample<O>("no rows", {K::silu}, {normal({0, 4}, 4), normal({0, 4}, 5)}));
  list.push_back(sample<O>("no rows, fused", {K::silu}, {normal({0, 4}, 6), absent()}));
  list.push_back(sample<O>("no width, fused", {K::silu}, {normal({3, 0}, 7), absent()}));
  list.push_back(sample<O>("wide rows, fused", {K::gelu_tanh}, {normal({3, 262}, 8), absent()}));
  list.push_back(
      sample<O>("saturated", {K::silu}, {values({5}, {-100, -20, 0, 20, 100}), normal({5}, 9)})
          .not_smooth());
  const O::Attrs limited{K::swish, 1.7, 0.8, 1}, plain{K::gelu};
  for (const O::Attrs& a : {limited, plain}) {
    const std::string name = a.limit > 0 ? "limits and an offset, " : "";
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      return sample<O>(name + "two tensors " + of, a, {normal(s, seed), normal(s, seed + 1)});
    });
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      return sample<O>(name + "fused " + of, a, {normal(s.with_last(2 * s[-1]), seed), absent()});
    });
    const Sample base =
        sample<O>(name + "3 x 9", a, {normal({3, 9}, 16, 2), normal({3, 9}, 17, 2)});
    add_views(list, base, row_layouts());
    add_numbers(list, base, all_numbers());
    add_numbers(list, base, {Numbers::zeros, Numbers::large}, 1);
    add_views(list, sample<O>(name + "fused 3 x 18", a, {normal({3, 18}, 18), absent()}),
              row_layouts());
  }
  for (int k = 0; k < ops::kActivations; ++k) {
    const std::string name = ops::kActivationNames[k];
    const SampleInput x = normal({3, 17}, 50 + static_cast<uint64_t>(k));
    list.push_back(sample<O>(name + " of 3 x 17", {static_cast<K>(k)}, {x, normal({3, 17}, 70)}));
    list.back().derived = true;
  }
  return list;
}

}  // namespace tally::samples
