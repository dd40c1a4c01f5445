#pragma once
#include "core/ops/layout.h"
#include "core/random.h"

namespace tally::ops {

/// Which elements a dropout keeps: a pure function of (seed, stream, element), so the mask is never
/// stored, and the same on every backend. Element i has word i of the Philox stream and is kept
/// when the word is not below p 2^32.
class DropoutMask {
 public:
  DropoutMask(uint64_t seed, uint64_t stream, double p)
      : seed_(seed), stream_(stream), threshold_(static_cast<uint64_t>(std::llround(p * 0x1p32))) {}
  bool keeps(int64_t element) {
    const auto i = static_cast<uint64_t>(element);
    if (i / 4 != block_) {
      block_ = i / 4;
      words_ = Philox::block(seed_, stream_, block_);
    }
    return words_[i % 4] >= threshold_;
  }

 private:
  uint64_t seed_, stream_, threshold_, block_ = ~uint64_t{0};
  std::array<uint32_t, 4> words_{};
};

// Dropout, alone or with the residual it is added to. Srivastava et al. 2014, JMLR 15, 1929-1958.
//
//   forward    y[i]  = (residual[i] +) x[i] k[i] / (1 - p)
//              k[i]  = 1 with probability 1 - p, else 0
//   backward   dx[i] = dy[i] k[i] / (1 - p),   dresidual = dy
//
//   x, residual, y and gradients (...), equal shapes    saved: nothing; the mask is drawn again
//
// p = 0 is the identity, p = 1 gives zeros (never 0/0). The stream comes from a Generator, whose
// position a checkpoint saves: a recomputed block that takes the same stream sees the same mask.
struct Dropout {
  static constexpr const char* name = "dropout";
  struct Attrs {
    double p = 0;
    uint64_t seed = 0, stream = 0;
    double factor() const { return p < 1 ? 1 / (1 - p) : 0; }
  };
  struct Saved {
    Attrs attrs;
    bool residual = false;
    Like y;
  };

  struct Call {
    static constexpr const char* name = "dropout";
    static constexpr Kind kind = Kind::elementwise;
    In x, residual;
    Out y;
    Attrs attrs;
    bool draws() const { return true; }
    void rebind(const StepChange& change) { attrs.stream += change.streams; }
    static constexpr const char* formula = "y = kept x / (1 - p) (+ residual)";
    static constexpr const char* operands = "x, residual, y";
    auto views() const { return std::tie(x, residual, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(static_cast<double>(x.numel()) * (residual.defined() ? 2 : 1)) +
             reads(x, residual) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      DropoutMask mask(attrs.seed, attrs.stream, attrs.p);
      const A factor = A(attrs.factor());
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const A scaled = A(x.row<T>(i)[d]) * factor;
          const A kept = mask.keeps(i * x.cols() + d) ? scaled : A(0);
          y.put(y.row<T>(i)[d], residual.defined() ? A(residual.row<T>(i)[d]) + kept : kept);
        }
      }
    }
  };

  static void check_probability(double p) {
    check(p >= 0 && p <= 1, "dropout: p must be in 0..1; got ", p, in_module());
  }
  static Tensor forward(const Tensor& x, const Tensor& residual, const Attrs& a, Saved* saved) {
    check_defined(name, "x", x);
    check_same_dtype(name, x, residual);
    check_probability(a.p);
    check(!residual.defined() || residual.shape() == x.shape(),
          "dropout: x and residual must have one shape; got ", x.shape(), " and ",
          residual.defined() ? residual.shape() : Shape{}, in_module());
    Tensor y = empty_like(x);
    run(x.device(), Call{x, residual, y, a});
    if (saved) *saved = {a, residual.defined(), y};
    return y;
  }
  static std::array<Tensor, 2> backward(const Tensor& dy, Saved&& s, const Into<2>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = into.at(0, dy);
    if (dx.wanted()) run(dy.device(), Call{dy, Tensor(), dx, s.attrs});
    return {dx, s.residual ? hand_on(dy, into, 1) : Tensor()};
  }
};

}  // namespace tally::ops
