#pragma once
// Layers with random parameters, and how far two results are apart.
#include "nn/module.h"
#include "tests/op_values.h"
#include "tests/worse.h"

namespace tally {

inline Tensor random(const Shape& shape, uint64_t seed, Device device, double size = 0.7) {
  return make_input(normal(shape, seed, size), DType::f64, device);
}

inline Tensor mask_of(std::initializer_list<uint8_t> values, const Shape& shape, Device device) {
  return from_host<uint8_t>(std::span<const uint8_t>(values.begin(), values.size()), shape, device);
}

template <class Layer>
void randomise(Layer& layer, Device device, uint64_t seed = 10) {
  layer.for_each_parameter(
      [&](const std::string&, Tensor& p) { p = random(p.shape(), seed++, device); });
  layer.requires_grad();
}

inline double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const Numbers x = numbers(a), y = numbers(b);
  double error = 0, size = 1e-300;
  for (size_t i = 0; i < x.size(); ++i) {
    error = test::worse(error, x[i], y[i]);
    size = std::max(size, std::fabs(y[i]));
  }
  return error / size;
}

}  // namespace tally
