// Attention that shares keys and values, and the layers' own embeddings, as rows of the table of
// samples.
#include "nn/layer_inputs.h"
#include "nn/module_sample.h"
#include "nn/samples.h"
#include "nn/shared_attention.h"

namespace tally::nn {
namespace {

using Tensors = std::vector<Tensor>;

// A layer and one that takes what it made, so that both gradients of the keys meet.
struct Pair : Module {
  Pair(SharedAttentionOptions o, DType t, Device d)
      : maker(o, t, d), taker((o.takes = true, o), t, d) {}
  Tensor forward(const Tensor& x, const Tensor& table) const {
    Generator dropout(5);
    const Positions places{table, 1, {}, {}};
    KeyValues shared;
    const Tensor y = maker.forward(x, places, shared, &dropout);
    return add(y, taker.forward(y, places, shared, &dropout));
  }
  void visit(Visitor& v) override {
    v.child("maker", maker);
    v.child("taker", taker);
  }
  SharedAttention maker, taker;
};

Sample attention_pair(const std::string& name, SharedAttentionOptions o, const SampleInput& x,
                      bool turned) {
  o.d_model = x.shape[-1];
  const ModuleUse<Pair> use{
      [o](DType t, Device d) { return std::make_unique<Pair>(o, t, d); },
      [](Pair& m, const Tensors& in) -> Tensors { return {m.forward(in[0], in[1])}; }};
  const SampleInput angles =
      accumulating(constant(normal({x.shape[1] + 1, std::max<int64_t>(2, o.head_dim)}, 92)));
  // Keys that are values are one tensor, which is read once.
  return module_sample("shared_attention", name, use, {x, turned ? angles : absent()}).bounded();
}

void add_shared_attention(std::vector<Sample>& all) {
  for (int options = 0; options < 32; ++options) {
    SharedAttentionOptions o;
    o.heads = 2, o.head_dim = 2, o.norm.eps = 0.1;
    o.kv_heads = options & 1 ? 2 : 1;
    o.keys_as_values = (options & 2) != 0;
    o.value_norm = (options & 4) != 0;
    o.qk_norm = (options & 8) != 0;
    o.norm.gain = options & 1 ? NormGain::gamma : NormGain::one_plus_gamma;
    o.rope_pairs = options & 2 ? ops::RotaryPairs::half_split : ops::RotaryPairs::interleaved;
    if (options & 4) o.scores.window = 2;
    if (options & 8) o.dropout = 0.3;
    all.push_back(attention_pair("options " + to_text(options), o,
                                 normal({1, 3, 4}, 30 + static_cast<uint64_t>(options)),
                                 (options & 16) != 0));
  }
  SharedAttentionOptions one;
  one.head_dim = 1;
  SharedAttentionOptions odd;
  odd.heads = 3, odd.head_dim = 4, odd.qk_norm = odd.value_norm = true, odd.norm.eps = 0.1;
  all.push_back(attention_pair("one token of one number", one, normal({1, 1, 1}, 70), false));
  all.push_back(attention_pair("no tokens", odd, normal({2, 0, 3}, 71), true));
  all.push_back(attention_pair("odd sizes", odd, normal({2, 5, 7}, 72), true));
}

// Both ends: the embeddings of all layers, and what a block makes of its own.
struct Inputs : Module {
  Inputs(LayerInputs::Sizes s, ops::ActivationKind act, NormOptions norm, DType t, Device d)
      : layers(s.layers), all(s, norm, t, d), one(s.width, s.d_model, act, norm, t, d) {}
  Tensor forward(const Tensor& x, const Tensor& ids) const {
    return one.forward(x, LayerInputs::of_layer(all.forward(ids, x), layers - 1));
  }
  void visit(Visitor& v) override {
    v.child("all", all);
    v.child("one", one);
  }
  int64_t layers;
  LayerInputs all;
  LayerInput one;
};

Sample layer_input(const std::string& name, int64_t layers, int64_t width, NormGain gain,
                   ops::ActivationKind act, const SampleInput& x) {
  NormOptions norm;
  norm.eps = 0.1, norm.gain = gain;
  const LayerInputs::Sizes sizes{5, layers, width, x.shape[-1]};
  const ModuleUse<Inputs> use{
      [=](DType t, Device d) { return std::make_unique<Inputs>(sizes, act, norm, t, d); },
      [](Inputs& m, const Tensors& in) -> Tensors { return {m.forward(in[0], in[1])}; }};
  return module_sample("layer_input", name, use, {x, indices({x.shape[0], x.shape[1]}, 7, 5)});
}

void add_layer_inputs(std::vector<Sample>& all) {
  using Kind = ops::ActivationKind;
  all.push_back(
      layer_input("three layers", 3, 2, NormGain::gamma, Kind::gelu_tanh, normal({2, 3, 4}, 1)));
  all.push_back(layer_input("gain 1 + w, SiLU", 2, 3, NormGain::one_plus_gamma, Kind::silu,
                            normal({1, 4, 5}, 2)));
  all.push_back(layer_input("no gain", 2, 3, NormGain::none, Kind::identity, normal({1, 4, 5}, 3)));
  all.push_back(
      layer_input("one of everything", 1, 1, NormGain::gamma, Kind::gelu, normal({1, 1, 1}, 4)));
  all.push_back(layer_input("no tokens", 2, 2, NormGain::gamma, Kind::gelu, normal({2, 0, 3}, 5)));
}

}  // namespace

void add_shared_modules(std::vector<Sample>& all) {
  add_shared_attention(all);
  add_layer_inputs(all);
}

}  // namespace tally::nn
