#pragma once
#include <algorithm>

#include "core/ops/update.h"

namespace tally::ops {

// Adafactor: one step of one parameter, with the second moment of a matrix kept as a row and a column
// of means. Shazeer & Stern 2018, arXiv:1804.04235, algorithm 4.
//
//   g = s dw,   beta_t = 1 - t^-beta2_decay
//   R = beta_t R + (1 - beta_t) rowmean(g^2 + eps),   C = beta_t C + (1 - beta_t) colmean(g^2 + eps)
//   r = max(sqrt(R / max(mean(R), sqrt(floor))) sqrt(C), sqrt(floor))
//   u = g / r,   u = u / max(1, rms(u) / clip)
//   a vector keeps v itself: r = sqrt(max(v, floor))
//   size = rho_t max(smallest, rms(w))      or rho_t alone (scaled = false)
//   m = beta1 m + (1 - beta1) size u        m absent: m = size u
//   w = (1 - decay x) w - m                 x = size (T5's form) or lr (PyTorch's)
//   rho_t = lr; min(lr, 1 / sqrt(t)) if relative
//
//   w, dw, m (..., I, O)   R (..., I)   C (..., O)   or   w, dw, v, m (I)
//
// A vector of means in place of the matrix: 4 (I + O) bytes of state, not 4 I O. Both published forms
// are options: PyTorch's has eps = 0 and a floor, T5's eps = 1e-30 and no floor. R C of two rows of
// T5's eps is 0 in f32 and a gradient of 0 would move by 0 / 0; hence the roots of each by itself.
struct AdafactorUpdate {
  static constexpr const char* name = "adafactor_update";
  struct Attrs : UpdateAttrs {
    double beta1 = 0;          // of m
    double beta2_decay = 0.8;  // beta_t = 1 - t^-beta2_decay
    double eps = 1e-30, floor = 0;
    double clip = 1;         // largest rms of u
    double smallest = 1e-3;  // of rms(w)
    bool scaled = true, relative = false, decay_by_size = true;
  };
  /// What is kept of the second moment: of a matrix row and column, of a vector row alone.
  struct Kept {
    Tensor row, column, first;
  };

  struct Call {
    static constexpr const char* name = "adafactor_update";
    static constexpr Kind kind = Kind::elementwise;
    In dw, scale;
    InOut w, row, column, m;
    Attrs attrs;
    double beta = 0, rho = 0;
    Call(const In& gradient, const In& factor, const InOut& weight, const InOut& rows,
         const InOut& columns, const InOut& moment, const Attrs& a)
        : dw(gradient), scale(factor), w(weight), row(rows), column(columns), m(moment), attrs(a) {
      derive();
    }
    void rebind(const StepChange& change) {
      attrs.lr = change.lr;
      attrs.step = change.step;
      derive();
    }
    void derive() {
      const double t = static_cast<double>(attrs.step);
      beta = 1 - std::pow(t, -attrs.beta2_decay);
      rho = attrs.relative ? std::min(attrs.rate(), 1 / std::sqrt(t)) : attrs.rate();
    }
    static constexpr const char* formula =
        "u = g / sqrt(R / mean(R)) / sqrt(C) / max(1, rms / clip), w = (1 - decay x) w - rho "
        "max(smallest, "
        "rms(w)) u";
    static constexpr const char* operands = "dw, scale, w, row, column, m";
    auto views() const { return std::tie(dw, scale, w, row, column, m); }
    DType dtype() const { return w.dtype; }
    bool factored() const { return column.defined(); }
    /// Matrices, and the rows and columns of one; of what is not factored all rows are one matrix.
    int64_t matrices() const { return factored() ? row.rows() : 1; }
    int64_t rows() const { return factored() ? row.cols() : w.rows(); }
    int64_t cols() const { return w.cols(); }
    Cost cost() const {
      const double n = static_cast<double>(w.numel()), s = scale.defined() ? 1 : 0;
      if (n == 0) return {};
      const double r = static_cast<double>(row.numel()), c = static_cast<double>(column.numel());
      const double means = 2 * (3 * r + static_cast<double>(matrices()));  // and roots of R, twice
      const double second = factored() ? 2 * n * (s + 3) + 4 * (r + c) + means : n * (s + 5);
      const double direction = s + (factored() ? 3 : 2), scaled = attrs.scaled ? 1 : 0;
      const double sizes = n * (direction + 2 + 2 * scaled) + 3 + 3 * scaled;
      const double step = n * (direction + (m.defined() ? 6 : 3)) + 3;
      return flops(second + sizes + step) + reads(dw, scale) + updates(w, row, column, m);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      if (w.numel() == 0) return;
      A squares(0), weights(0);
      for (int64_t b = 0; b < matrices(); ++b) {
        factored() ? factors<T>(b) : moments<T>();
        each<T>(b, [&](int64_t, int64_t, const A& u, const T& weight) {
          squares += u * u;
          if (attrs.scaled) weights += A(weight) * A(weight);
        });
      }
      const A n(static_cast<double>(w.numel()));
      const A clipped = larger(A(1), sqrt(squares / n) / A(attrs.clip));
      const A size = attrs.scaled ? A(rho) * larger(A(attrs.smallest), sqrt(weights / n)) : A(rho);
      const A keep = A(1) - A(attrs.weight_decay) * (attrs.decay_by_size ? size : A(attrs.rate()));
      const A step = size / clipped;
      for (int64_t b = 0; b < matrices(); ++b) {
        each<T>(b, [&](int64_t i, int64_t d, const A& u, T& weight) {
          A move = step * u;
          if (m.defined()) {
            A& mi = m.row<A>(i)[d];
            move = A(mi) * A(attrs.beta1) + A(1 - attrs.beta1) * move;
            mi = move;
          }
          weight = T(A(weight) * keep - move);
        });
      }
    }

   private:
    template <class T, class A = acc_t<T>>
    A gradient(int64_t i, int64_t d) const {
      const A g = A(dw.row<T>(i)[d]);
      return scale.defined() ? g * scale.at<A>(0) : g;
    }
    template <class T, class A = acc_t<T>>
    A square(int64_t i, int64_t d) const {
      const A g = gradient<T>(i, d);
      return g * g + A(attrs.eps);
    }
    template <class A>
    void mix(A& kept, const A& now) const {
      kept = A(kept) * A(beta) + A(1 - beta) * now;
    }
    // Row and column of means of matrix b.
    template <class T, class A = acc_t<T>>
    void factors(int64_t b) const {
      for (int64_t i = 0; i < rows(); ++i) {
        A sum(0);
        for (int64_t d = 0; d < cols(); ++d) sum += square<T>(b * rows() + i, d);
        mix(row.row<A>(b)[i], sum / A(static_cast<double>(cols())));
      }
      for (int64_t d = 0; d < cols(); ++d) {
        A sum(0);
        for (int64_t i = 0; i < rows(); ++i) sum += square<T>(b * rows() + i, d);
        mix(column.row<A>(b)[d], sum / A(static_cast<double>(rows())));
      }
    }
    template <class T, class A = acc_t<T>>
    void moments() const {
      each_element(w, [&](int64_t i, int64_t d) { mix(row.row<A>(i)[d], square<T>(i, d)); });
    }
    // f(row, column, u, weight) for the elements of matrix b.
    template <class T, class F>
    void each(int64_t b, F&& f) const {
      using A = acc_t<T>;
      const A floor(std::sqrt(attrs.floor));
      A mean(0);
      if (factored()) {
        for (int64_t i = 0; i < rows(); ++i) mean += A(row.row<A>(b)[i]);
        mean = larger(floor, mean / A(static_cast<double>(rows())));
      }
      for (int64_t r = 0; r < rows(); ++r) {
        const int64_t i = b * rows() + r;
        const A root = factored() ? A(sqrt(A(row.row<A>(b)[r]) / mean)) : A(1);
        for (int64_t d = 0; d < cols(); ++d) {
          const A v = factored() ? A(larger(floor, root * A(sqrt(A(column.row<A>(b)[d])))))
                                 : A(sqrt(larger(A(attrs.floor), A(row.row<A>(i)[d]))));
          f(i, d, gradient<T>(i, d) / v, w.row<T>(i)[d]);
        }
      }
    }
  };

  /// Takes the step. Error for shapes or types that differ and for odd numbers.
  static void into(const Tensor& w, const Kept& kept, const Tensor& dw, const Tensor& scale,
                   const Attrs& a) {
    check_update(name, w, dw, scale);
    const bool factored = w.ndim() >= 2;
    const Shape rows = factored ? w.shape().drop_last() : w.shape();
    check_kept(name, "the row of means", w, kept.row, rows);
    if (factored) {
      check_kept(name, "the column of means", w, kept.column, rows.drop_last().append(w.size(-1)));
    } else {
      check(!kept.column.defined(), "adafactor_update: a vector has no column of means",
            in_module());
    }
    if (kept.first.defined()) check_kept(name, "the first moment", w, kept.first);
    check_attrs(a);
    check(kept.first.defined() || a.beta1 == 0, "adafactor_update: beta1 ", a.beta1,
          " needs a tensor that keeps the first moment", in_module());
    run(w.device(), Call(dw, scale, w, kept.row, kept.column, kept.first, a));
  }
  static void check_attrs(const Attrs& a) {
    ops::check_attrs(name, a);
    check_share(name, "beta1", a.beta1);
    check_number(name, "beta2_decay", a.beta2_decay);
    check_number(name, "eps", a.eps);
    check_number(name, "floor", a.floor);
    check_number(name, "smallest", a.smallest);
    check(a.clip > 0, "adafactor_update: clip must be above 0; got ", a.clip);
  }
};

}  // namespace tally::ops
