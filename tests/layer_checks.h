#pragma once
// Layers that are compositions on the tape: their gradients against differences.
#include "nn/module.h"
#include "tests/op_values.h"
#include "tests/worse.h"

namespace tally::test {

/// The largest difference of the tokens `first`.. of y from those of `whole`, over its largest.
inline double error_of(const Tensor& y, const Tensor& whole, int64_t first) {
  const Numbers a = numbers(y), b = numbers(contiguous(whole.narrow(1, first, y.size(1))));
  REQUIRE(a.size() == b.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error = test::worse(error, a[i], b[i]);
    size = std::max(size, std::fabs(b[i]));
  }
  return error / size;
}

/// Central differences of every number of `t` against its gradient.
inline void check_gradient(const std::string& what, Tensor& t,
                           const std::function<double()>& loss) {
  const Numbers gradient = numbers(t.grad());
  Numbers v = numbers(t);
  const auto put = [&] {
    backend(t.device()).copy_from_host(t.data(), v.data(), t.nbytes());
    t.storage().note_write("test");
  };
  double size = 1e-3;
  for (const double g : gradient) size = std::max(size, std::fabs(g));
  for (size_t i = 0; i < v.size(); ++i) {
    const double h = 1e-5, was = v[i];
    v[i] = was + h, put();
    const double up = loss();
    v[i] = was - h, put();
    const double slope = (up - loss()) / (2 * h);
    v[i] = was, put();
    INFO(what << "[" << i << "]: " << gradient[i] << ", differences " << slope);
    CHECK(std::fabs(gradient[i] - slope) <= 1e-7 * size);
  }
}

/// The gradients of x and of every parameter of `layer` for sum(forward(x) dy), dy random.
inline void check_gradients(nn::Module& layer, Tensor x,
                            const std::function<Tensor(const Tensor&)>& forward) {
  layer.requires_grad();
  x.requires_grad_();
  const Tensor dy = make_input(normal(x.shape(), 99, 0.7), DType::f64, x.device());
  {
    const Tape tape;
    backward(forward(x), dy);
  }
  const auto loss = [&] {
    const PauseTape values_only;
    return sum(mul(forward(x), dy)).item();
  };
  check_gradient("x", x, loss);
  for (auto& [name, p] : layer.named_parameters()) check_gradient(name, p, loss);
}

}  // namespace tally::test
