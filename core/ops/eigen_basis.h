#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/ops/clip.h"
#include "core/ops/larger_first.h"
#include "core/ops/update.h"

namespace tally::ops {

/// Error unless a square matrix in f32 or f64; n (n, n).
inline int64_t check_square(const char* op, const Tensor& a) {
  check_no_gradient(op, "the matrix", a);
  check_update(op, a, a, {});
  check(a.ndim() == 2 && a.size(0) == a.size(1), op, ": needs a square matrix; got ", a.shape(),
        in_module());
  return a.size(0);
}

/// By comparing only: no operation is counted.
template <class W>
bool is_finite(const W& x) {
  return x < W(INFINITY) && x > W(-INFINITY);
}
/// What a factorisation gives of a matrix with a NaN or an infinity anywhere: NaN everywhere.
template <class A>
A kept(const A& value, bool finite) {
  return finite ? value : A(NAN);
}

// Eigenvalues and eigenvectors of a symmetric matrix, the largest first: a = q diag(values) q^T.
//   a, q (n, n), eigenvectors in columns     values (n)     of a the lower triangle is read
//
// The loops are Jacobi's: kSweeps sweeps of plane rotations, each of which makes one pair of entries
// 0 (Golub & Van Loan 2013, section 8.5); a backend calls LAPACK, which needs about 9 n^3. Signs of
// the columns, and columns of equal eigenvalues, are free: nothing here depends on them.
struct EigenBasis {
  static constexpr const char* name = "eigen_basis";
  static constexpr int kSweeps = 12;
  struct Result {
    Tensor q, values;
  };
  struct Call {
    static constexpr const char* name = "eigen_basis";
    static constexpr Kind kind = Kind::contraction;
    In a;
    Out q, values;
    std::byte* scratch = nullptr;
    static constexpr const char* formula = "a = q diag(values) q^T";
    static constexpr const char* operands = "a, q, values";
    auto views() const { return std::tie(a, q, values); }
    DType dtype() const { return a.dtype; }
    int64_t n() const { return a.cols(); }
    /// What LAPACK's divide and conquer needs, and the matrix in f64.
    size_t workspace() const {
      const auto size = static_cast<size_t>(n());
      return 8 * (1 + 7 * size + 3 * size * size) + 4 * (3 + 5 * size);
    }
    Cost cost() const {
      const double size = static_cast<double>(n()), pairs = size * (size - 1) / 2;
      const double below = size * (size + 1) / 2;  // elements of the lower triangle
      return flops(2 * below + kSweeps * pairs * (13 + 18 * size) + size) +
             Cost{0, below * static_cast<double>(size_of(a.dtype)), 0} + writes(q, values);
    }
    template <class T>
    void reference() const {
      using W = wide_t<T>;
      const auto size = static_cast<size_t>(n());
      std::vector<W> m(size * size), vectors(size * size, W(0)), found(size);
      bool finite = true;
      const W largest = scaled_copy<T>(m, finite);
      for (size_t i = 0; i < size; ++i) vectors[i * size + i] = W(1);
      for (int sweep = 0; sweep < kSweeps; ++sweep) {
        for (size_t i = 0; i < size; ++i) {
          for (size_t j = i + 1; j < size; ++j) rotate(m, vectors, i, j);
        }
      }
      std::vector<int64_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      for (size_t i = 0; i < size; ++i) found[i] = m[i * size + i];
      std::sort(order.begin(), order.end(), LargerFirst<W>{found});
      for (size_t j = 0; j < size; ++j) {
        const auto from = static_cast<size_t>(order[j]);
        values.put(values.at<T>(static_cast<int64_t>(j)),
                   kept(acc_t<T>(found[from] * largest), finite));
        for (size_t i = 0; i < size; ++i)
          q.put(q.row<T>(static_cast<int64_t>(i))[j],
                kept(acc_t<T>(vectors[i * size + from]), finite));
      }
    }

   private:
    // a over its largest entry, which is returned: squares neither overflow nor vanish.
    template <class T, class W>
    W scaled_copy(std::vector<W>& m, bool& finite) const {
      W largest(0);
      for (int64_t i = 0; i < n(); ++i) {
        for (int64_t d = 0; d <= i; ++d) {
          const W x = W(acc_t<T>(a.row<T>(i)[d]));
          m[static_cast<size_t>(i * n() + d)] = x;
          largest = larger(largest, x < W(0) ? W(0) - x : W(0) + x);
          finite = finite && is_finite(x);
        }
      }
      const W scale = largest > W(0) ? largest : W(1);
      for (int64_t i = 0; i < n(); ++i) {
        for (int64_t d = 0; d <= i; ++d) {
          const W x = m[static_cast<size_t>(i * n() + d)] / scale;
          m[static_cast<size_t>(i * n() + d)] = m[static_cast<size_t>(d * n() + i)] = x;
        }
      }
      return scale;
    }
    // The rotation of columns and rows p and q that makes m[p, q] 0.
    template <class W>
    static void rotate(std::vector<W>& m, std::vector<W>& vectors, size_t p, size_t q) {
      const size_t n = static_cast<size_t>(std::sqrt(static_cast<double>(m.size())) + 0.5);
      const W gap = m[q * n + q] - m[p * n + p], twice = W(2) * m[p * n + q];
      const W length = sqrt(gap * gap + twice * twice);
      const W sum = gap < W(0) ? gap - length : gap + length;
      const W t = twice / (sum == W(0) ? W(1) : sum), c = W(1) / sqrt(W(1) + t * t), s = t * c;
      for (size_t k = 0; k < n; ++k) turn(m[k * n + p], m[k * n + q], c, s);
      for (size_t k = 0; k < n; ++k) turn(m[p * n + k], m[q * n + k], c, s);
      for (size_t k = 0; k < n; ++k) turn(vectors[k * n + p], vectors[k * n + q], c, s);
    }
    template <class W>
    static void turn(W& x, W& y, const W& c, const W& s) {
      const W before = x;
      x = c * before - s * y;
      y = s * before + c * y;
    }
  };
  static Result of(const Tensor& a) {
    const int64_t n = check_square(name, a);
    check(n <= 30000, "eigen_basis: LAPACK counts its workspace in 32 bits; got ", n,
          " rows, leave sides longer than 30000 out", in_module());
    Result r{empty(a.shape(), a.dtype(), a.device()), empty({n}, a.dtype(), a.device())};
    run(a.device(), Call{a, r.q, r.values});
    return r;
  }
};

}  // namespace tally::ops
