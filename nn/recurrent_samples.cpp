// Layers with a recurrence in place of attention, as rows of the table of samples.
#include "nn/delta_net.h"
#include "nn/mamba.h"
#include "nn/module_sample.h"
#include "nn/samples.h"

namespace tally::nn {
namespace {

using Tensors = std::vector<Tensor>;

// x and its documents.
Sample mamba(const std::string& name, MambaOptions o, const SampleInput& x,
             const SampleInput& documents = absent()) {
  o.d_model = x.shape[-1];
  const ModuleUse<Mamba> use{
      [o](DType t, Device d) { return std::make_unique<Mamba>(o, t, d); },
      [](Mamba& m, const Tensors& in) -> Tensors { return {m.forward(in[0], in[1])}; }};
  Sample s = module_sample("mamba", name, use, {x, documents});
  s.bounded_cost = documents.present;
  return s;
}

Sample delta_net(const std::string& name, DeltaNetOptions o, const SampleInput& x,
                 const SampleInput& documents = absent()) {
  o.d_model = x.shape[-1];
  const ModuleUse<DeltaNet> use{
      [o](DType t, Device d) { return std::make_unique<DeltaNet>(o, t, d); },
      [](DeltaNet& m, const Tensors& in) -> Tensors { return {m.forward(in[0], in[1])}; }};
  // A key head that serves several value heads is a view that repeats: it is read once.
  return module_sample("delta_net", name, use, {x, documents}).bounded();
}

}  // namespace

void add_recurrent_modules(std::vector<Sample>& all) {
  const SampleInput documents = indices({2, 4}, {0, 0, 1, 1, 0, 1, 2, 2});
  for (int options = 0; options < 4; ++options) {
    MambaOptions o;
    o.inner = 3, o.state = 2, o.dt_rank = 2, o.conv_width = options & 1 ? 4 : 2;
    o.conv_bias = o.norms = (options & 2) != 0;
    o.norm_eps = 0.1;
    all.push_back(mamba("options " + to_text(options), o, normal({2, 3, 4}, 1)));
    if (options == 3) {
      all.push_back(mamba("one token of one number", o, normal({1, 1, 1}, 2)));
      all.push_back(mamba("no tokens", o, normal({2, 0, 3}, 3)));
      all.push_back(mamba("documents", o, normal({2, 4, 3}, 7), documents));
    }
    DeltaNetOptions d;
    d.key_heads = options & 1 ? 1 : 2, d.value_heads = 2;
    d.key_dim = 2, d.value_dim = options & 2 ? 3 : 2;
    d.conv_width = options & 1 ? 3 : 2, d.norm_eps = 0.1;
    all.push_back(delta_net("options " + to_text(options), d, normal({2, 3, 4}, 4)));
    if (options == 3) {
      all.push_back(delta_net("one token of one number", d, normal({1, 1, 1}, 5)));
      all.push_back(delta_net("no tokens", d, normal({2, 0, 3}, 6)));
      all.push_back(delta_net("documents", d, normal({2, 4, 3}, 8), documents));
    }
  }
}

}  // namespace tally::nn
