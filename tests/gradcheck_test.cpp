// Wrong backward passes, written on purpose: each is caught, and named.
#include <catch2/catch.hpp>

#include "autograd/proof/proof.h"
#include "backends/register_all.h"

using namespace tally;
using Catch::Matchers::Contains;

namespace {

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

// Both proofs fail and suggest `mistake`.
template <class Rule>
void check_caught(const std::string& mistake, const Shape& w_shape = {4, 5}, double scale = 1) {
  register_all();
  const Sample s = sample_of<Rule>(w_shape, scale);
  for (const ProofResult& r : {prove_adjoint(s), prove_by_differences(s)}) {
    INFO(r.note);
    CHECK_FALSE(r.ok());
    CHECK_THAT(r.mistake, Contains(mistake));
    CHECK_THAT(r.note, Contains(mistake));
  }
}

}  // namespace

TEST_CASE("gradcheck: a right backward passes both proofs", "[proof]") {
  register_all();
  for (const Shape& w : {Shape{4, 5}, Shape{5}}) {
    const Sample s = sample_of<Product>(w);
    CHECK(prove_adjoint(s).ok());
    const ProofResult r = prove_by_differences(s);
    CHECK(r.ok());
    CHECK(r.error < 1e-9);
    CHECK(r.input >= 0);
    CHECK(r.analytic == Approx(r.numeric));
  }
}

TEST_CASE("gradcheck: names a missing sum over broadcast rows", "[proof]") {
  struct Wrong : Product {
    static Shape gradient_shape(const Shape&, const Shape& x) { return x; }
  };
  check_caught<Wrong>("is a sum over the broadcast axes missing?", {5});
}

TEST_CASE("gradcheck: names = in place of +=", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        r.dw[d] = r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("only the last row counts: = stands where += belongs", {5});
}

TEST_CASE("gradcheck: names a sum that was taken over one row only", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        if (r.row == 0) r.dw[d] = r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("only the first row counts", {5});
}

TEST_CASE("gradcheck: names a wrong sign", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = -(r.dy[d] * r.w[d]);
        r.dw[d] = r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("wrong sign");
}

TEST_CASE("gradcheck: names a factor of 2", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        r.dw[d] = 2 * r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("off by a factor of 2: a constant is forgotten or comes twice");
}

TEST_CASE("gradcheck: names a mean in place of a sum, and a sum in place of a mean", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        r.dw[d] += r.dy[d] * r.x[d] / static_cast<double>(r.rows);
      }
    }
  };
  check_caught<Wrong>("off by a factor of 0.25 = 1/4: a mean is taken where a sum belongs", {5});
  struct Mean : MeanOfRow {
    static void slope(Rows<double> r) {
      double sum = 0;
      for (int64_t d = 0; d < r.cols; ++d) sum += r.dy[d];
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = sum * r.w[d];
        r.dw[d] = sum * r.x[d] / static_cast<double>(r.cols);
      }
    }
  };
  check_caught<Mean>("off by a factor of 5: a sum is taken where a mean belongs");
}

TEST_CASE("gradcheck: names a transposed gradient", "[proof]") {
  struct Wrong : MatrixProduct {
    static void slope(Rows<double> r) {
      for (int64_t o = 0; o < r.cols; ++o) {
        for (int64_t d = 0; d < r.cols; ++d) {
          r.dx[d] += r.dy[o] * (r.w - r.row * r.cols)[o * r.cols + d];
          (r.dw - r.row * r.cols)[d * r.cols + o] += r.dy[o] * r.x[d];
        }
      }
    }
  };
  check_caught<Wrong>("transposed: rows and columns are mixed up", {5, 5});
}

TEST_CASE("gradcheck: names the gradient of another input", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.x[d];
        r.dw[d] = r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("this is the gradient of input 1: the inputs are mixed up");
}

TEST_CASE("gradcheck: names an index that is off by one", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        if (d > 0) r.dw[d - 1] = r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("moved by one place: an index is off by one");
}

TEST_CASE("gradcheck: names a mask that is off by one", "[proof]") {
  struct Wrong : Masked {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.row; ++d) r.dx[d] = r.dy[d] * r.w[d];
      for (int64_t d = 0; d <= r.row; ++d) r.dw[d] = r.dy[d] * r.x[d];
    }
  };
  check_caught<Wrong>(
      "4 of 20 elements differ, between 0 and 18 (they are 0): a border, a mask or an index is off "
      "by one");
}

TEST_CASE("gradcheck: names an upstream gradient that is not multiplied in", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.w[d];
        r.dw[d] = r.dy[d] * r.x[d];
      }
    }
  };
  check_caught<Wrong>("does not depend on the upstream gradient");
}

TEST_CASE("gradcheck: names the input where the output belongs", "[proof]") {
  struct Wrong : Exponential {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) r.dx[d] = r.dy[d] * r.x[d];
      slope_of_w(r);
    }
  };
  check_caught<Wrong>("uses input 0 where the output belongs");
}

TEST_CASE("gradcheck: names a factor of the chain rule that is missing, and one too much",
          "[proof]") {
  struct Missing : Exponential {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) r.dx[d] = r.dy[d] * r.w[d] * exp(r.x[d]);
      slope_of_w(r);
    }
  };
  check_caught<Missing>("the factor input 1 of the chain rule is missing");
  struct HandedOn : Exponential {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) r.dx[d] = r.dy[d];
      slope_of_w(r);
    }
  };
  check_caught<HandedOn>("the factor the output of the chain rule is missing");
  struct TooMuch : Exponential {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) r.dx[d] = r.dy[d] * r.y[d] * r.x[d];
      slope_of_w(r);
    }
  };
  check_caught<TooMuch>("a factor too much: input 0");
}

TEST_CASE("gradcheck: names a gradient that is never written, or stale", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) r.dx[d] = r.dy[d] * r.w[d];
    }
  };
  check_caught<Wrong>("zero everywhere: it is never written");
}

TEST_CASE("gradcheck: names a gradient that is not finite", "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        r.dw[d] = r.dy[d] * r.x[d] / (r.row == 2 ? 0.0 : 1.0);
      }
    }
  };
  check_caught<Wrong>("not finite: a division by zero");
}

TEST_CASE("gradcheck: names a term that is dropped", "[proof]") {
  struct Wrong : Softmax {  // without - p sum(dy y)
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) r.dx[d] = r.dy[d] * r.y[d];
      slope_of_w(r);
    }
  };
  register_all();
  Sample s = sample_of<Wrong>({4, 5});
  s.inputs[1] = constant(values({4, 5}, std::vector<double>(20, 1.0)));  // w = 1: the plain softmax
  const ProofResult r = prove_by_differences(s);
  INFO(r.note);
  CHECK_FALSE(r.ok());
  CHECK_THAT(r.mistake,
             Contains("a term that goes with the output on each row is missing or wrong") ||
                 Contains("the slope"));
}

TEST_CASE("gradcheck: names a mean over the row that is dropped", "[proof]") {
  struct Wrong : Centred {
    static void slope(Rows<double> r) {
      double mean = 0;
      for (int64_t d = 0; d < r.cols; ++d) mean += r.x[d] / static_cast<double>(r.cols);
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        r.dw[d] = r.dy[d] * (r.x[d] - mean);
      }
    }
  };
  check_caught<Wrong>(
      "a term that is the same for the whole row is missing or wrong: a mean or a sum over the "
      "row");
}

TEST_CASE("gradcheck: names an epsilon in the wrong place", "[proof]") {
  struct Wrong : Normalised {
    static void slope(Rows<double> r) {
      const double root = sqrt(mean_square(r)) + eps;
      double mean = 0;
      for (int64_t d = 0; d < r.cols; ++d)
        mean += r.dy[d] * r.w[d] * r.x[d] / root / static_cast<double>(r.cols);
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = (r.dy[d] * r.w[d] - r.x[d] / root * mean) / root;
        r.dw[d] = r.dy[d] * r.x[d] / sqrt(mean_square(r) + eps);
      }
    }
  };
  check_caught<Wrong>("a little off everywhere: an epsilon in the wrong place");
}

TEST_CASE("gradcheck: a backward that overwrites what it should add to fails the tape's proof",
          "[proof]") {
  struct Wrong : Product {
    static void slope(Rows<double> r) {
      for (int64_t d = 0; d < r.cols; ++d) {
        r.dx[d] = r.dy[d] * r.w[d];
        r.dw[d] = r.dy[d] * r.x[d];
      }
    }
  };
  register_all();
  const Sample s = sample_of<Wrong>({4, 5});
  CHECK(prove_by_differences(s).ok());  // fresh gradients are right
  const ProofResult r = prove_tape(s, kReference, DType::f64);
  INFO(r.note);
  CHECK_FALSE(r.ok());
  CHECK_THAT(r.note, Contains("accumulated") && Contains("= stands where += belongs"));
}

namespace {
struct None {
  static constexpr const char* name = "none";
  struct Attrs {};
  struct Saved {};
  static Tensor forward(const Tensor& x, const Attrs&, Saved*) {
    return Frame<Product>::forward(x, x, {}, nullptr);
  }
  static std::array<Tensor, 1> backward(const Tensor&, Saved&&, const Into<1>& = {}) { return {}; }
};
}  // namespace

TEST_CASE("gradcheck: a missing gradient is an error by name", "[proof]") {
  register_all();
  sample_of<Product>({5});
  const ProofResult r = prove_by_differences(sample<None>("one", {}, {normal({2, 2}, 1)}));
  CHECK_FALSE(r.ok());
  CHECK_THAT(r.mistake,
             Contains("none: backward returned no gradient for input 0 of sample 'one'"));
}
