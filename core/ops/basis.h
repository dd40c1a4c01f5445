#pragma once
#include "core/ops/eigen_basis.h"

namespace tally::ops {

// Bases of symmetric matrices, for Shampoo and SOAP. All of them compute in f64 for f32 matrices: the
// smallest eigenvalues of a sum of squares are lost in f32 beside the largest.

// Columns of a basis by how much of a matrix they carry, the most first: with p = a q,
// order = argsort(diag(q^T a q)), descending.     p, q (n, n)    order (n) of i64
struct BasisOrder {
  static constexpr const char* name = "basis_order";
  struct Call {
    static constexpr const char* name = "basis_order";
    static constexpr Kind kind = Kind::elementwise;
    In p, q;
    Out order;
    static constexpr const char* formula = "order = argsort(diag(q^T p)), the largest first";
    static constexpr const char* operands = "p, q, order";
    auto views() const { return std::tie(p, q, order); }
    DType dtype() const { return q.dtype; }
    Cost cost() const {
      return flops(2.0 * static_cast<double>(q.numel())) + reads(p, q) + writes(order);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      const int64_t n = q.cols();
      std::vector<A> carried(static_cast<size_t>(n), A(0));
      each_element(q, [&](int64_t i, int64_t d) {
        carried[static_cast<size_t>(d)] += A(q.row<T>(i)[d]) * A(p.row<T>(i)[d]);
      });
      std::vector<int64_t> list(carried.size());
      std::iota(list.begin(), list.end(), 0);
      std::sort(list.begin(), list.end(), LargerFirst<A>{carried});
      for (int64_t i = 0; i < n; ++i) order.put_index<T>(i, list[static_cast<size_t>(i)]);
    }
  };
  static Tensor of(const Tensor& p, const Tensor& q) {
    const int64_t n = check_square(name, q);
    check_update(name, q, p, {});
    const Tensor order = empty({n}, DType::i64, q.device());
    run(q.device(), Call{p, q, order});
    return order;
  }
};

// The orthogonal factor of columns taken in an order: p[:, order] = q r with r upper triangular.
//   p, q (n, n)    order (n) of i64
//
// Householder's reflections (Golub & Van Loan 2013, section 5.2); a backend calls LAPACK. The signs
// of the columns are free.
struct OrthonormalColumns {
  static constexpr const char* name = "orthonormal_columns";
  struct Call {
    static constexpr const char* name = "orthonormal_columns";
    static constexpr Kind kind = Kind::contraction;
    In p, order;
    Out q;
    std::byte* scratch = nullptr;
    static constexpr const char* formula = "p[:, order] = q r, q orthogonal";
    static constexpr const char* operands = "p, order, q";
    auto views() const { return std::tie(p, order, q); }
    DType dtype() const { return p.dtype; }
    int64_t n() const { return p.cols(); }
    size_t workspace() const {
      const auto size = static_cast<size_t>(n());
      return 8 * (size * size + 65 * size + 1);
    }
    Cost cost() const {
      double total = 0;
      for (int64_t k = 0; k < n(); ++k) {
        const double left = static_cast<double>(n() - k);             // rows and columns
        total += 5 * left + 4;                                        // the reflector
        total += (left + static_cast<double>(n())) * (4 * left + 1);  // on what is left, and on q
      }
      return flops(total) + reads(p, order) + writes(q);
    }
    template <class T>
    void reference() const {
      using W = wide_t<T>;
      const auto size = static_cast<size_t>(n());
      std::vector<W> m(size * size), basis(size * size, W(0)), v(size);
      bool finite = true;
      for (size_t j = 0; j < size; ++j) {
        const int64_t from = order.index<T>(static_cast<int64_t>(j));
        for (size_t i = 0; i < size; ++i)
          m[i * size + j] = W(acc_t<T>(p.row<T>(static_cast<int64_t>(i))[from]));
        for (size_t i = 0; i < size; ++i) finite = finite && is_finite(m[i * size + j]);
        basis[j * size + j] = W(1);
      }
      for (size_t k = 0; k < size; ++k) {
        const W factor = reflector(m, v, size, k);
        reflect_columns(m, v, factor, size, k);
        reflect_rows(basis, v, factor, size, k);
      }
      each_element(q, [&](int64_t i, int64_t d) {
        q.put(q.row<T>(i)[d], kept(acc_t<T>(basis[static_cast<size_t>(i * n() + d)]), finite));
      });
    }

   private:
    // v with (1 - factor v v^T) m[k:, k] = (+-norm, 0, ...); factor 2 / |v|^2. Over the largest of the
    // column, so that squares neither overflow nor vanish.
    template <class W>
    static W reflector(const std::vector<W>& m, std::vector<W>& v, size_t n, size_t k) {
      W most(0), least(0), squares(0), length(0);
      for (size_t i = k; i < n; ++i) {
        most = larger(most, m[i * n + k]);
        least = m[i * n + k] < least ? m[i * n + k] : least;
      }
      const W scale = reach(most, least);
      for (size_t i = k; i < n; ++i) {
        v[i] = m[i * n + k] / scale;
        squares += v[i] * v[i];
      }
      const W norm = sqrt(squares);
      v[k] = v[k] < W(0) ? v[k] - norm : v[k] + norm;
      for (size_t i = k; i < n; ++i) length += v[i] * v[i];
      return W(2) / (length > W(0) ? length : W(1));
    }
    // The farther from 0 of two numbers on either side of it; 1 where both are 0.
    template <class W>
    static W reach(const W& most, const W& least) {
      const W below = W(0) - least;
      const W far = below > most ? below : most;
      return far > W(0) ? far : W(1);
    }
    template <class W>
    static void reflect_columns(std::vector<W>& m, const std::vector<W>& v, const W& factor,
                                size_t n, size_t k) {
      for (size_t j = k; j < n; ++j) {
        W dot(0);
        for (size_t i = k; i < n; ++i) dot += v[i] * m[i * n + j];
        const W part = factor * dot;
        for (size_t i = k; i < n; ++i) m[i * n + j] -= part * v[i];
      }
    }
    template <class W>
    static void reflect_rows(std::vector<W>& basis, const std::vector<W>& v, const W& factor,
                             size_t n, size_t k) {
      for (size_t i = 0; i < n; ++i) {
        W dot(0);
        for (size_t j = k; j < n; ++j) dot += basis[i * n + j] * v[j];
        const W part = factor * dot;
        for (size_t j = k; j < n; ++j) basis[i * n + j] -= part * v[j];
      }
    }
  };
  /// Writes q, which may not be p.
  static void into(const Tensor& q, const Tensor& p, const Tensor& order) {
    const int64_t n = check_square(name, p);
    check_update(name, p, q, {});
    check(order.defined() && order.dtype() == DType::i64 && order.shape() == Shape{n},
          "orthonormal_columns: order must be ", n, " places in i64", in_module());
    run(p.device(), Call{p, order, q});
  }
};

// v = v with its rows (axis 0) or columns (axis 1) in another order.     v (n, m), order of i64
struct Reordered {
  static constexpr const char* name = "reordered";
  struct Call {
    static constexpr const char* name = "reordered";
    static constexpr Kind kind = Kind::movement;
    In order;
    InOut v;
    int axis;
    static constexpr const char* formula = "v = v[order] (or v[:, order])";
    static constexpr const char* operands = "order, v";
    auto views() const { return std::tie(order, v); }
    DType dtype() const { return v.dtype; }
    Cost cost() const { return reads_if(v.numel() > 0, order) + updates(v); }
    template <class T>
    void reference() const {
      if (v.numel() == 0) return;
      const auto n = static_cast<size_t>(v.rows() * v.cols());
      std::vector<T> old(n);
      each_element(v, [&](int64_t i, int64_t d) {
        old[static_cast<size_t>(i * v.cols() + d)] = T(acc_t<T>(v.row<T>(i)[d]));
      });
      std::vector<int64_t> from(static_cast<size_t>(order.numel()));
      for (int64_t i = 0; i < order.numel(); ++i) from[static_cast<size_t>(i)] = order.index<T>(i);
      each_element(v, [&](int64_t i, int64_t d) {
        const int64_t row = axis == 0 ? from[static_cast<size_t>(i)] : i,
                      column = axis == 1 ? from[static_cast<size_t>(d)] : d;
        v.row<T>(i)[d] = old[static_cast<size_t>(row * v.cols() + column)];
      });
    }
  };
  static void into(const Tensor& v, const Tensor& order, int axis) {
    check_update(name, v, v, {});
    check(v.ndim() == 2 && (axis == 0 || axis == 1) && order.defined() &&
              order.dtype() == DType::i64 && order.shape() == Shape{v.size(axis)},
          "reordered: needs a matrix and one place in i64 for each line of axis 0 or 1; got ",
          v.shape(), ", axis ", axis, in_module());
    run(v.device(), Call{order, v, axis});
  }
};

// s = q diag(max(values, floor)^power): the columns of a root.     q, s (n, n)    values (n)
struct RootColumns {
  static constexpr const char* name = "root_columns";
  struct Call {
    static constexpr const char* name = "root_columns";
    static constexpr Kind kind = Kind::elementwise;
    In q, values;
    Out s;
    double power, floor;
    static constexpr const char* formula = "s = q diag(max(values, floor)^power)";
    static constexpr const char* operands = "q, values, s";
    auto views() const { return std::tie(q, values, s); }
    DType dtype() const { return q.dtype; }
    Cost cost() const {
      return flops(2.0 * static_cast<double>(q.numel())) + reads(q, values) + writes(s);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      each_element(q, [&](int64_t i, int64_t d) {
        const A value = larger(A(floor), A(values.at<T>(d)));
        s.put(s.row<T>(i)[d], A(q.row<T>(i)[d]) * raised(value));
      });
    }

   private:
    template <class A>
    A raised(const A& x) const {
      if constexpr (std::is_floating_point_v<A>)
        return std::pow(x, static_cast<A>(power));
      else
        return pow(x, power);
    }
  };
  static Tensor of(const Tensor& q, const Tensor& values, double power, double floor) {
    const int64_t n = check_square(name, q);
    check_defined(name, "the eigenvalues", values);
    check(values.shape() == Shape{n} && values.dtype() == q.dtype(), "root_columns: needs ", n,
          " eigenvalues in ", q.dtype(), "; got ", values.shape(), in_module());
    check(std::isfinite(power) && floor > 0,
          "root_columns: power must be finite and floor above 0; got ", power, " and ", floor);
    const Tensor s = empty(q.shape(), q.dtype(), q.device());
    run(q.device(), Call{q, values, s, power, floor});
    return s;
  }
};

}  // namespace tally::ops
