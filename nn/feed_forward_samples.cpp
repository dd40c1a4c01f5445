#include "nn/compositions.h"
#include "nn/samples.h"

namespace tally::nn {
void add_feed_forward(std::vector<Sample>& all) {
  using L = FeedForwardLayer;
  using K = ops::ActivationKind;
  all.push_back(sample<L>("plain GELU with biases", {K::gelu, false},
                          {normal({2, 3, 4}, 1), absent(), absent(), normal({5, 4}, 2),
                           normal({5}, 3), normal({4, 5}, 4), normal({4}, 5), absent(), absent()})
                    .equals(plain_composition(K::gelu)));
  all.push_back(sample<L>("gated SiLU, separate matrices", {K::silu, true},
                          {normal({2, 2, 3}, 6), normal({5, 3}, 7), absent(), normal({5, 3}, 8),
                           absent(), normal({3, 5}, 9), absent(), absent(), absent()})
                    .equals(gated_composition(K::silu)));
  all.push_back(
      sample<L>("gated tanh GELU, one matrix, biases", {K::gelu_tanh, true},
                {normal({1, 3, 4}, 10), absent(), absent(), normal({6, 4}, 11), normal({6}, 12),
                 normal({4, 3}, 13), normal({4}, 14), absent(), absent()})
          .equals(fused_composition(K::gelu_tanh, 3)));
  all.push_back(sample<L>("plain GELU, shifts", {K::gelu, false},
                          {normal({2, 3, 4}, 15), absent(), absent(), normal({5, 4}, 16), absent(),
                           normal({4, 5}, 17), absent(), normal({}, 18), normal({}, 19)})
                    .equals(plain_composition(K::gelu)));
  all.push_back(sample<L>("gated SiLU, separate matrices, shifts", {K::silu, true},
                          {normal({2, 2, 3}, 20), normal({5, 3}, 21), absent(), normal({5, 3}, 22),
                           absent(), normal({3, 5}, 23), absent(), normal({}, 24), normal({}, 25)})
                    .equals(gated_composition(K::silu)));
  all.push_back(sample<L>("gated tanh GELU, one matrix, shifts", {K::gelu_tanh, true},
                          {normal({1, 3, 4}, 26), absent(), absent(), normal({6, 4}, 27), absent(),
                           normal({4, 3}, 28), absent(), normal({}, 129), normal({}, 30)})
                    .equals(fused_composition(K::gelu_tanh, 3)));
}

}  // namespace tally::nn
