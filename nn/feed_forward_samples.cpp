#include "nn/compositions.h"
#include "nn/feed_forward.h"
#include "nn/module_sample.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

// A layer whose activation has numbers of its own.
Sample learned(const std::string& name, FeedForwardOptions o, const SampleInput& x) {
  o.d_model = x.shape[-1];
  const ModuleUse<FeedForward> use{
      [o](DType t, Device d) { return std::make_unique<FeedForward>(o, t, d); },
      [](FeedForward& m, const std::vector<Tensor>& in) -> std::vector<Tensor> {
        return {m.forward(in[0])};
      }};
  return module_sample("learned_feed_forward", name, use, {x});
}

void add_learned(std::vector<Sample>& all) {
  for (int options = 0; options < 16; ++options) {
    FeedForwardOptions o;
    o.d_ff = 3, o.gated = (options & 1) != 0, o.fused = (options & 2) != 0;
    o.bias = (options & 4) != 0;
    o.learned = options & 8 ? LearnedActivation::swish : LearnedActivation::xielu;
    all.push_back(learned("options " + to_text(options), o,
                          normal({2, 3, 5}, 200 + static_cast<uint64_t>(options))));
    if (options != 3 && options != 11) continue;
    all.push_back(learned("no tokens, " + to_text(options), o, normal({2, 0, 4}, 217)));
    all.push_back(learned("one number, " + to_text(options), o, normal({1, 1, 1}, 218)));
  }
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
                           normal({4, 3}, 28), absent(), normal({}, 129), normal({}, 30)})
                    .equals(fused_composition(K::gelu_tanh, 3)));
  add_learned(all);
}

}  // namespace tally::nn
