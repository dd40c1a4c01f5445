#pragma once
#include <span>
#include <vector>

#include "core/ops/matmul.h"

namespace tally::optim {

// A parameter as the matrix whose sides Shampoo and SOAP treat: (rows, columns), a vector (n, 1).

inline Shape as_matrix_shape(const Tensor& w) {
  return w.ndim() < 2 ? Shape{w.numel(), 1} : Shape{-1, w.size(-1)};
}
inline Tensor as_matrix(const Tensor& w) { return w.reshape(as_matrix_shape(w)); }

inline Tensor matrix_product(const Tensor& a, const Tensor& b, bool trans_a = false,
                             bool trans_b = false) {
  return ops::MatMul::forward(a, b, {trans_a, trans_b}, nullptr);
}
/// g g^T of side 0, g^T g of side 1.
inline Tensor side_product(const Tensor& g, int side) {
  return side == 0 ? matrix_product(g, g, false, true) : matrix_product(g, g, true, false);
}
/// a x of side 0, x a of side 1, with a or its transpose.
inline Tensor on_side(const Tensor& x, const Tensor& a, int side, bool transposed = false) {
  return side == 0 ? matrix_product(a, x, transposed, false)
                   : matrix_product(x, a, false, transposed);
}

/// The identity of n rows times `value`, in the type that `like` accumulates in.
inline Tensor diagonal(int64_t n, double value, const Tensor& like) {
  const auto make = [&]<class T>(std::type_identity<T>) {
    std::vector<T> v(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i) v[static_cast<size_t>(i * n + i)] = static_cast<T>(value);
    return from_host<T>(std::span<const T>(v), {n, n}, like.device());
  };
  return like.dtype() == DType::f64 ? make(std::type_identity<double>{})
                                    : make(std::type_identity<float>{});
}

}  // namespace tally::optim
