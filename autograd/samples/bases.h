#pragma once
#include "autograd/samples/grid.h"
#include "core/ops/basis.h"
#include "core/ops/direction.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"

namespace tally::samples {

// What Shampoo and SOAP compute of square matrices. Signs of eigenvectors are free, so outputs are
// those that do not depend on them: a = q diag(values) q^T.

using OfSquare = std::function<Sample::Tensors(const Tensor& a)>;

inline Sample square_sample(const char* op, std::string name, SampleInput a, OfSquare make) {
  Sample s;
  s.op = op;
  s.name = std::move(name);
  s.narrow = false;
  s.inputs = {constant(std::move(a))};
  s.apply = [=](const Sample::Tensors& in) -> Sample::Tensors {
    ops::check_square(op, in[0]);
    return make(in[0]);
  };
  return s;
}

/// a = b b^T + I / 2, b (n, n).
inline SampleInput positive(int64_t n, uint64_t seed) {
  SampleInput b = normal({n, n}, seed), a = b;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = i == j ? 0.5 : 0;
      for (int64_t k = 0; k < n; ++k)
        sum += b.values[static_cast<size_t>(i * n + k)] * b.values[static_cast<size_t>(j * n + k)];
      a.values[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  return a;
}

inline std::vector<Sample> square_samples(const char* op, const OfSquare& make) {
  std::vector<Sample> list;
  for (int64_t n : {0, 1, 2, 3, 5, 18})
    list.push_back(
        square_sample(op, "n = " + to_text(n), positive(n, 10 + 10 * uint64_t(n)), make));
  SampleInput wide = positive(4, 7);
  for (double& v : wide.values) v *= 1e6;
  list.push_back(square_sample(op, "large", wide, make));
  list.push_back(square_sample(op, "diagonal with a 0", values({2, 2}, {0, 0, 0, 40}), make));
  return list;
}

/// A matrix of its own beside one that is given, and the places of its columns from the last.
inline Tensor another(const Tensor& a) {
  return make_input(positive(a.size(0), 70), a.dtype(), a.device());
}
inline Tensor reversed(const Tensor& a) {
  std::vector<int64_t> places(static_cast<size_t>(a.size(0)));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<int64_t>(places.size() - 1 - i);
  return from_host<int64_t>(std::span<const int64_t>(places), {a.size(0)}, a.device());
}

inline std::vector<Sample> eigen_basis() {
  return square_samples(ops::EigenBasis::name, [](const Tensor& a) -> Sample::Tensors {
    return {ops::EigenBasis::of(a).values};
  });
}
inline std::vector<Sample> basis_order() {
  return square_samples(ops::BasisOrder::name, [](const Tensor& a) -> Sample::Tensors {
    return {ops::BasisOrder::of(a, another(a))};
  });
}
/// Columns beyond the rank are free: of q the first without its sign, and what it makes of p.
inline std::vector<Sample> orthonormal_columns() {
  return square_samples(ops::OrthonormalColumns::name, [](const Tensor& p) -> Sample::Tensors {
    const Tensor q = another(p);
    ops::OrthonormalColumns::into(q, p, reversed(p));
    const int64_t columns = std::min<int64_t>(1, p.size(0));
    const Tensor first = zeros({p.size(0), columns}, p.dtype(), p.device()),
                 same = zeros(first.shape(), p.dtype(), p.device());
    ops::Blend::into(first, 0, q.narrow(1, 0, columns), 1);
    ops::Blend::into(same, 0, first, 1);
    const Tensor turned = ops::MatMul::forward(q, p, {true, false}, nullptr);
    return {ops::Mul::forward(first, same, {}, nullptr),
            ops::MatMul::forward(q, turned, {}, nullptr)};
  });
}
inline std::vector<Sample> reordered() {
  const auto along = [](int axis) -> OfSquare {
    return [axis](const Tensor& a) -> Sample::Tensors {
      const Tensor v = another(a);
      ops::Reordered::into(v, reversed(a), axis);
      return {v};
    };
  };
  std::vector<Sample> list = square_samples(ops::Reordered::name, along(0));
  list.push_back(square_sample(ops::Reordered::name, "columns", positive(4, 70), along(1)));
  return list;
}
inline std::vector<Sample> root_columns() {
  return square_samples(ops::RootColumns::name, [](const Tensor& a) -> Sample::Tensors {
    const Tensor found = make_input(normal({a.size(0)}, 80), a.dtype(), a.device());
    return {ops::RootColumns::of(a, found, -0.25, 1e-3)};
  });
}

}  // namespace tally::samples
