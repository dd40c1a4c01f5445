#pragma once
#include <algorithm>
#include <tuple>

#include "core/view.h"

namespace tally::cpu {

/// What the vector kernels do not serve runs the loops of the definition; the ledger says so.
template <class T, class Call>
void plain_loops(const Call& call) {
  recorder().provider = "plain loops";
  call.template reference<T>();
}

/// Whether the numbers of every operand lie side by side; absent ones do.
template <class Call>
bool all_dense(const Call& call) {
  return std::apply([](const auto&... v) { return ((!v.defined() || v.is_dense()) && ...); },
                    call.views());
}

/// A constant of a call, as the loops of f32 take it.
inline float narrow(double x) { return static_cast<float>(x); }

/// Rows to a piece of work, enough that handing it out costs nothing: about 32 kB.
inline int64_t rows_of_piece(int64_t cols) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(cols, 1));
}

/// `count` rows of a view from `begin` on.
template <class V>
V some_rows(V v, int64_t begin, int64_t count) {
  if (!v.defined()) return v;
  const int64_t cols = v.cols();
  v.data = v.template pointer<std::byte>() +
           begin * v.row_stride * static_cast<int64_t>(size_of(v.dtype));
  v.strides = Shape{v.row_stride, 1};
  v.shape = Shape{count, cols};
  v.is_scalar = false;
  return v;
}

/// Sums of 16 interleaved parts, so that no addition waits for the one before.
template <class T, class F>
T sum_of(int64_t n, F&& term) {
  constexpr int64_t kParts = 16;
  T parts[kParts] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (int64_t k = 0; k < kParts; ++k) parts[k] += term(i + k);
  for (; i < n; ++i) sum += term(i);
  for (T part : parts) sum += part;
  return sum;
}

/// Whether a matrix product can read or write a view: rows that do not overlap (expanded ones do).
inline bool fits_gemm(const View& v) {
  return v.numel() == 0 || v.rows() <= 1 || v.row_stride >= v.cols();
}
/// The leading dimension of such a view.
inline int64_t leading(const View& v) {
  return v.numel() == 0 || v.rows() <= 1 ? (v.cols() > 0 ? v.cols() : 1) : v.row_stride;
}

}  // namespace tally::cpu
