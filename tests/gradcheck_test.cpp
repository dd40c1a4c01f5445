// Wrong backward passes, written on purpose: each is caught, and named.
#include <catch2/catch.hpp>

#include "autograd/proof/proof.h"
#include "backends/register_all.h"
#include "tests/wrong_backwards.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

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
