#pragma once
// Small ops with right backward passes, from which tests derive wrong ones.
#include <cmath>

#include "autograd/proof/proof.h"

namespace tally::test {

// What a rule below sees of its rows.
template <class T>
struct Rows {
  const T *x, *w, *y, *dy;
  T *dx, *dw;
  int64_t row, rows, cols;
};

// An op on x (N,D) and w, y like x, whose loops are those of a rule: value(rows, out) and
// slope(rows), called for each row. w is a (D) or like x.
template <class Rule>
struct Frame {
  static constexpr const char* name = Rule::name;
  struct Attrs {};
  struct Saved {
    SavedTensor x, w, y;
  };
  struct Forward {
    static constexpr const char* name = Rule::name;
    static constexpr Kind kind = Kind::elementwise;
    In x, w;
    Out y;
    auto views() const { return std::tie(x, w, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return {}; }
    template <class T>
    void reference() const {
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T* wi = w.row<T>(w.rows() == 1 ? 0 : i);
        Rule::template value<T>(
            {x.row<T>(i), wi, nullptr, nullptr, nullptr, nullptr, i, x.rows(), x.cols()},
            y.row<T>(i));
      }
    }
  };
  struct Backward {
    static constexpr const char* name = Rule::name;
    static constexpr Kind kind = Kind::elementwise;
    In dy, x, w, y;
    Out dx, dw;
    auto views() const { return std::tie(dy, x, w, y, dx, dw); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return {}; }
    void loops() const {
      using T = double;
      for (int64_t i = 0; i < x.rows(); ++i) {
        const int64_t k = w.rows() == 1 ? 0 : i;
        Rule::slope({x.row<T>(i), w.row<T>(k), y.row<T>(i), dy.row<T>(i), dx.row<T>(i),
                     dw.row<T>(k), i, x.rows(), x.cols()});
      }
    }
  };
  static Tensor forward(const Tensor& x, const Tensor& w, const Attrs&, Saved* saved) {
    Tensor y = empty_like(x);
    run(x.device(), Forward{x, w, y});
    if (saved) *saved = {x, w, y};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    const Tensor& x = s.x;
    const auto sum = [&](size_t k, const Shape& shape) {
      return into.target[k].defined() ? into.target[k] : zeros(shape, x.dtype(), x.device());
    };
    const Tensor dx = sum(0, x.shape());
    const Tensor dw = sum(1, Rule::gradient_shape(s.w.get().shape(), x.shape()));
    run(dy.device(), Backward{dy, s.x, s.w, s.y, dx, dw});
    return {dx, dw};
  }
};

// y = x w, the right way; the mistakes derive from it.
struct Product {
  static constexpr const char* name = "product";
  template <class T>
  static void value(Rows<T> r, T* y) {
    for (int64_t d = 0; d < r.cols; ++d) y[d] = r.x[d] * r.w[d];
  }
  static void slope(Rows<double> r) {
    for (int64_t d = 0; d < r.cols; ++d) {
      r.dx[d] += r.dy[d] * r.w[d];
      r.dw[d] += r.dy[d] * r.x[d];
    }
  }
  static Shape gradient_shape(const Shape& w, const Shape&) { return w; }
};

// y = w^2 e^x: the slope is y itself.
struct Exponential : Product {
  template <class T>
  static void value(Rows<T> r, T* y) {
    for (int64_t d = 0; d < r.cols; ++d) y[d] = r.w[d] * r.w[d] * exp(r.x[d]);
  }
  static void slope_of_w(Rows<double> r) {
    for (int64_t d = 0; d < r.cols; ++d) r.dw[d] = 2 * r.dy[d] * r.w[d] * exp(r.x[d]);
  }
};

// y = w softmax(x).
struct Softmax : Product {
  template <class T>
  static void value(Rows<T> r, T* y) {
    T sum(0);
    for (int64_t d = 0; d < r.cols; ++d) sum += exp(r.x[d]);
    for (int64_t d = 0; d < r.cols; ++d) y[d] = r.w[d] * exp(r.x[d]) / sum;
  }
  static void slope_of_w(Rows<double> r) {
    for (int64_t d = 0; d < r.cols; ++d) r.dw[d] = r.dy[d] * r.y[d] / r.w[d];
  }
};

// every element of a row is the mean of x w over it
struct MeanOfRow : Product {
  template <class T>
  static void value(Rows<T> r, T* y) {
    T mean(0);
    for (int64_t d = 0; d < r.cols; ++d) mean += r.x[d] * r.w[d] / T(r.cols);
    for (int64_t d = 0; d < r.cols; ++d) y[d] = mean;
  }
};

// each row of y is its row of x times the same (5,5) matrix
struct MatrixProduct : Product {
  template <class T>
  static void value(Rows<T> r, T* y) {
    for (int64_t o = 0; o < r.cols; ++o) {
      y[o] = T(0);
      for (int64_t d = 0; d < r.cols; ++d) y[o] += r.x[d] * (r.w - r.row * r.cols)[o * r.cols + d];
    }
  }
};

// y = x w where row i sees columns 0..i, else 0
struct Masked : Product {
  template <class T>
  static void value(Rows<T> r, T* y) {
    for (int64_t d = 0; d < r.cols; ++d) y[d] = d <= r.row ? r.x[d] * r.w[d] : T(0);
  }
};

// y = w (x - mean x)
struct Centred : Product {
  template <class T>
  static void value(Rows<T> r, T* y) {
    T mean(0);
    for (int64_t d = 0; d < r.cols; ++d) mean += r.x[d] / T(r.cols);
    for (int64_t d = 0; d < r.cols; ++d) y[d] = r.w[d] * (r.x[d] - mean);
  }
};

// y = w x / sqrt(mean x^2 + eps), as rms_norm
struct Normalised : Product {
  static constexpr double eps = 1e-3;
  template <class T>
  static T mean_square(const Rows<T>& r) {
    T square(0);
    for (int64_t d = 0; d < r.cols; ++d) square += r.x[d] * r.x[d] / T(r.cols);
    return square;
  }
  template <class T>
  static void value(Rows<T> r, T* y) {
    const T root = sqrt(mean_square(r) + T(eps));
    for (int64_t d = 0; d < r.cols; ++d) y[d] = r.w[d] * r.x[d] / root;
  }
};

template <class Rule>
Sample sample_of(const Shape& w_shape, double scale = 1) {
  kernels<typename Frame<Rule>::Forward>[kReference.kind][static_cast<size_t>(DType::f64)] =
      [](const auto& c) { c.template reference<double>(); };
  kernels<typename Frame<Rule>::Backward>[kReference.kind][static_cast<size_t>(DType::f64)] =
      [](const auto& c) { c.loops(); };
  kernels<typename Frame<Rule>::Forward>[kReference.kind][static_cast<size_t>(DType::dual)] =
      [](const auto& c) { c.template reference<Dual>(); };
  return sample<Frame<Rule>>("4 rows of 5", {}, {normal({4, 5}, 1, scale), normal(w_shape, 2)});
}

}  // namespace tally::test
