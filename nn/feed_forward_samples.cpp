#include "autograd/functional.h"
#include "nn/feed_forward.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

using Tensors = Sample::Tensors;

Sample::Function plain_composition(ops::ActivationKind kind) {
  return [kind](const Tensors& in) -> Tensors {
    const Tensor h = activation(shifted(linear(in[0], in[3], in[4]), in[7]), kind);
    return {linear(shifted(h, in[8]), in[5], in[6])};
  };
}
Sample::Function gated_composition(ops::ActivationKind kind) {
  return [kind](const Tensors& in) -> Tensors {
    const Tensor a = shifted(linear(in[0], in[1], in[2]), in[7]), b = linear(in[0], in[3], in[4]);
    return {linear(shifted(mul(activation(a, kind), b), in[8]), in[5], in[6])};
  };
}
Sample::Function fused_composition(ops::ActivationKind kind, int64_t f) {
  return [kind, f](const Tensors& in) -> Tensors {
    const Tensor both = linear(in[0], in[3], in[4]);
    const Tensor a = shifted(narrow(both, -1, 0, f), in[7]), b = narrow(both, -1, f, f);
    return {linear(shifted(mul(activation(a, kind), b), in[8]), in[5], in[6])};
  };
}

}  // namespace

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
                           normal({4, 3}, 28), absent(), normal({}, 29), normal({}, 30)})
                    .equals(fused_composition(K::gelu_tanh, 3)));
}

}  // namespace tally::nn
