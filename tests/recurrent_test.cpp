// Layers with a recurrence in place of attention: decoding against the full pass, gradients, errors.
// Recorded models with them are in tests/family_test.cpp.
#include "nn/delta_net.h"
#include "nn/mamba.h"
#include "tests/layer_checks.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

nn::DeltaNetOptions delta_options() {
  nn::DeltaNetOptions o;
  o.d_model = 5, o.key_heads = 2, o.value_heads = 4, o.key_dim = 3, o.value_dim = 2;
  o.conv_width = 3;
  return o;
}
nn::MambaOptions mamba_options(bool norms) {
  nn::MambaOptions o;
  o.d_model = 4, o.inner = 6, o.state = 3, o.dt_rank = 2, o.conv_width = 3;
  o.norms = norms, o.conv_bias = norms;
  return o;
}

Tensor random(const Shape& shape, uint64_t seed, Device device) {
  return make_input(normal(shape, seed, 0.7), DType::f64, device);
}

template <class Layer, class Options>
Layer layer_of(const Options& o, Device device) {
  Layer layer(o, DType::f64, device);
  uint64_t seed = 10;
  layer.for_each_parameter(
      [&](const std::string&, Tensor& p) { p = random(p.shape(), seed++, device); });
  return layer;
}

template <class Layer>
void check_decoding(const Layer& layer, const Tensor& x) {
  const int64_t tokens = x.size(1);
  const Tensor whole = layer.forward(x);
  for (int64_t prompt = 1; prompt <= tokens; ++prompt) {
    nn::RecurrentState past;
    for (int64_t at = 0; at < tokens;) {
      const int64_t count = at == 0 ? prompt : 1;
      const Tensor y = layer.forward_cached(contiguous(x.narrow(1, at, count)), past);
      INFO("prompt " << prompt << ", position " << at);
      CHECK(test::error_of(y, whole, at) <= 1e-13);
      at += count;
    }
  }
}

}  // namespace

TEST_CASE_METHOD(Setup, "recurrent layers: decoding equals the full pass at every position",
                 "[layer]") {
  for (const Device device : {kReference, kCPU}) {
    check_decoding(layer_of<nn::DeltaNet>(delta_options(), device), random({2, 6, 5}, 1, device));
    for (const bool norms : {false, true})
      check_decoding(layer_of<nn::Mamba>(mamba_options(norms), device),
                     random({2, 6, 4}, 2, device));
  }
}

TEST_CASE_METHOD(Setup, "recurrent layers: gradients equal differences", "[layer]") {
  auto delta = layer_of<nn::DeltaNet>(delta_options(), kReference);
  test::check_gradients(delta, random({2, 4, 5}, 3, kReference),
                        [&](const Tensor& x) { return delta.forward(x); });
  for (const bool norms : {false, true}) {
    auto mamba = layer_of<nn::Mamba>(mamba_options(norms), kReference);
    test::check_gradients(mamba, random({2, 4, 4}, 4, kReference),
                          [&](const Tensor& x) { return mamba.forward(x); });
  }
}

TEST_CASE_METHOD(Setup, "recurrent layers: say what does not fit", "[error]") {
  auto d = delta_options();
  const auto delta = layer_of<nn::DeltaNet>(d, kCPU);
  CHECK_THROWS_WITH(delta.forward(random({1, 2, 4}, 1, kCPU)), Contains("D = 5; got (1, 2, 4)"));
  d.value_heads = 3;
  CHECK_THROWS_WITH(nn::DeltaNet(d, DType::f32, kCPU), Contains("a multiple of key_heads = 2"));
  d = delta_options(), d.key_dim = 0;
  CHECK_THROWS_WITH(nn::DeltaNet(d, DType::f32, kCPU), Contains("must be 1 or more"));
  auto m = mamba_options(false);
  const auto mamba = layer_of<nn::Mamba>(m, kCPU);
  CHECK_THROWS_WITH(mamba.forward(random({1, 2, 5}, 1, kCPU)), Contains("D = 4; got (1, 2, 5)"));
  m.state = 0;
  CHECK_THROWS_WITH(nn::Mamba(m, DType::f32, kCPU), Contains("must be 1 or more"));
}
