#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/activation.h"

namespace tally::samples {

inline std::vector<Sample> activation() {
  using O = ops::Activation;
  using K = ops::ActivationKind;
  std::vector<Sample> list;
  for (int k = 0; k < ops::kActivations; ++k) {
    const auto kind = static_cast<K>(k);
    const std::string name = ops::kActivationNames[k];
    const double parameter = kind == K::swish ? 1.702 : kind == K::elu ? 0.7 : 1;
    const auto seed = static_cast<uint64_t>(k);
    list.push_back(
        sample<O>(name + " of 5 x 7", {kind, parameter}, {normal({5, 7}, 10 + seed, 2)}));
    list.push_back(sample<O>(name + " at 0, small and large", {kind, parameter},
                             {values({4, 4}, {0, -0.0, 1e-8, -1e-8, 1e-3, -1e-3, 3, -3, 8, -8, 20,
                                              -20, 100, -100, 700, -700})})
                       .not_smooth());
  }
  list.push_back(sample<O>("one element", {K::gelu}, {normal({1}, 30)}));
  list.push_back(sample<O>("a scalar", {K::gelu_tanh}, {normal({}, 31)}));
  list.push_back(sample<O>("no elements", {K::silu}, {normal({2, 0, 3}, 32)}));
  list.push_back(sample<O>("wide rows", {K::silu}, {normal({3, 131}, 33)}));
  for (int k = 0; k < ops::kActivations; ++k) {
    const O::Attrs attrs{static_cast<K>(k), k == static_cast<int>(K::elu) ? 0.7 : 1.3};
    const std::string name = ops::kActivationNames[k];
    add_shapes(list, row_shapes(), [&](const std::string& of, const Shape& s, uint64_t seed) {
      return sample<O>(name + " " + of, attrs, {normal(s, seed + static_cast<uint64_t>(k), 2)});
    });
    const Sample base = sample<O>(name, attrs, {normal({3, 9}, 40, 2)});
    add_views(list, base, row_layouts());
    add_numbers(list, base, {Numbers::tiny, Numbers::large, Numbers::steps});
  }
  return list;
}

}  // namespace tally::samples
