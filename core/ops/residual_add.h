#pragma once
#include "core/ops/dropout.h"

namespace tally::ops {

// How a branch joins the residual stream when it is not simply added: scaled by a constant, by a
// learned gain, and left out at random for whole sequences. Lecture claims L14, L15, L24.
//
//   forward    y[n,d]     = residual[n,d] + f[n] g[d] x[n,d],   f[n] = scale k[b(n)] / (1 - p)
//              k[b]       = 1 with probability 1 - p, else 0, for each sequence b
//   backward   dresidual  = dy
//              dx[n,d]    = f[n] g[d] dy[n,d]
//              dg[d]      = sum_n f[n] dy[n,d] x[n,d];  one number: summed over d too
//
//   residual, x, y and gradients (..., D), equal shapes; with p > 0 the first axis is the sequence
//   gain, dgain (), (D) or absent: 1    saved: x (where a gain is learned), gain; masks are drawn again
//
// One learned number that begins at 0 is ReZero (Bachlechner et al. 2020, arXiv:2003.04887), one
// that begins at 1 the multiplier of Fixup (Zhang et al. 2019, arXiv:1901.09321), a learned row
// LayerScale (Touvron et al. 2021, arXiv:2103.17239); a constant is Granite's residual multiplier.
// p > 0 is stochastic depth (Huang et al. 2016, arXiv:1603.09382) with the survivors divided by 1 - p,
// so that evaluation changes nothing; p = 1 gives the residual, never 0/0.
struct ResidualAdd {
  static constexpr const char* name = "residual_add";
  struct Attrs {
    double scale = 1;
    double p = 0;
    uint64_t seed = 0, stream = 0;
  };
  struct Saved {
    SavedTensor x, gain;
    Attrs attrs;
    Like y;
  };

  /// f[n] of rows in order: rows of one sequence share a draw.
  class Factors {
   public:
    Factors(const Attrs& a, int64_t rows, int64_t sequences)
        : mask_(a.seed, a.stream, a.p),
          kept_(a.p < 1 ? a.scale / (1 - a.p) : 0),
          rows_(sequences > 0 ? std::max<int64_t>(rows / sequences, 1) : 1),
          draws_(a.p > 0) {}
    /// 0 for a sequence that is left out.
    double at(int64_t row) { return !draws_ || mask_.keeps(row / rows_) ? kept_ : 0; }

   private:
    DropoutMask mask_;
    double kept_;
    int64_t rows_;
    bool draws_;
  };
  static int64_t sequences(const View& v) { return v.shape.ndim() > 1 ? v.shape[0] : 1; }

  struct Forward {
    static constexpr const char* name = "residual_add.forward";
    static constexpr Kind kind = Kind::elementwise;
    In residual, x, gain;
    Out y;
    Attrs attrs;
    bool draws() const { return attrs.p > 0; }
    void rebind(const StepChange& change) { attrs.stream += change.streams; }
    static constexpr const char* formula = "y = residual + f g x";
    static constexpr const char* operands = "residual, x, gain, y";
    auto views() const { return std::tie(residual, x, gain, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(static_cast<double>(x.numel()) * (gain.defined() ? 3 : 2)) + reads(residual, x) +
             reads_if(x.numel() > 0, gain) + writes(y);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      Factors factors(attrs, x.rows(), sequences(x));
      for (int64_t i = 0; i < x.rows(); ++i) {
        const double f = factors.at(i);
        for (int64_t d = 0; d < x.cols(); ++d) {
          A branch = A(x.row<T>(i)[d]) * A(f);
          if (gain.defined()) branch = branch * A(gain.at<T>(gain.is_scalar ? 0 : d));
          // A sequence that is left out adds nothing, not even its infinities.
          y.put(y.row<T>(i)[d], A(residual.row<T>(i)[d]) + (f == 0 ? A(0) : branch));
        }
      }
    }
  };

  struct Backward {
    static constexpr const char* name = "residual_add.backward";
    static constexpr Kind kind = Kind::elementwise;
    In dy, x, gain;
    Out dx, dgain;
    Attrs attrs;
    std::byte* scratch = nullptr;
    void rebind(const StepChange& change) { attrs.stream += change.streams; }
    static constexpr int64_t kPieces = 16;  // of the rows, whose parts of dgain are added in order
    static constexpr const char* formula = "dx = f g dy, dgain = sum(f dy x)";
    static constexpr const char* operands = "dy, x, gain, dx, dgain";
    auto views() const { return std::tie(dy, x, gain, dx, dgain); }
    DType dtype() const { return dy.dtype; }
    size_t workspace() const {
      return static_cast<size_t>(kPieces * dgain.numel()) * size_of(acc_dtype(dy.dtype));
    }
    Cost cost() const {
      const double n = static_cast<double>(dy.numel());
      const double for_dx = dx.defined() && gain.defined() ? 1 : 0,
                   for_gain = dgain.defined() ? 2 : 0;
      return flops(n * (1 + for_dx + for_gain)) + reads(dy) + reads_if(dgain.defined(), x) +
             reads_if(dx.defined() && n > 0, gain) + writes(dx, dgain);
    }
    template <class T>
    void reference() const {
      using A = acc_t<T>;
      std::vector<A> sums(static_cast<size_t>(dgain.numel()), A(0));
      Factors factors(attrs, dy.rows(), sequences(dy));
      for (int64_t i = 0; i < dy.rows(); ++i) {
        const double f = factors.at(i);
        for (int64_t d = 0; d < dy.cols(); ++d) {
          const int64_t at = gain.is_scalar ? 0 : d;
          const A g = A(dy.row<T>(i)[d]) * A(f);
          if (dx.defined()) dx.put(dx.row<T>(i)[d], gain.defined() ? g * A(gain.at<T>(at)) : g);
          if (!dgain.defined()) continue;
          const A part = g * A(x.row<T>(i)[d]);
          sums[static_cast<size_t>(at)] += f == 0 ? A(0) : part;
        }
      }
      for (int64_t d = 0; d < dgain.numel(); ++d)
        dgain.put(dgain.at<T>(d), sums[static_cast<size_t>(d)]);
    }
  };

  static void check_attrs(const Attrs& a, const Shape& shape) {
    check(std::isfinite(a.scale), "residual_add: scale must be finite; got ", a.scale, in_module());
    check(a.p >= 0 && a.p <= 1, "residual_add: p must be in 0..1; got ", a.p, in_module());
    check(a.p == 0 || shape.ndim() >= 2,
          "residual_add: whole sequences are left out, the first axis of (B, ..., D); got ", shape,
          in_module());
  }
  static Tensor forward(const Tensor& residual, const Tensor& x, const Tensor& gain, const Attrs& a,
                        Saved* saved) {
    check_defined(name, "residual", residual);
    check_defined(name, "x", x);
    check_same_dtype(name, x, residual, gain);
    check(residual.shape() == x.shape(), "residual_add: residual and x must have one shape; got ",
          residual.shape(), " and ", x.shape(), in_module());
    check(
        !gain.defined() || gain.ndim() == 0 || (x.ndim() >= 1 && gain.shape() == Shape{x.size(-1)}),
        "residual_add: gain must be one number () or (D) with D the last axis of x; x is ",
        x.shape(), ", gain is ", gain.defined() ? gain.shape() : Shape{}, in_module());
    check_attrs(a, x.shape());
    Tensor y = empty_like(x);
    run(x.device(), Forward{residual, x, gain, y, a});
    if (saved) *saved = {gain.defined() ? x : Tensor(), gain, a, y};
    return y;
  }
  static std::array<Tensor, 3> backward(const Tensor& dy, Saved&& s, const Into<3>& into = {}) {
    check_upstream(name, dy, s.y);
    const GradTensor dx = into.at(1, dy), dgain = into.at(2, s.gain);
    if (dx.wanted() || dgain.wanted())
      run(dy.device(), Backward{dy, s.x, s.gain, dx, dgain, s.attrs});
    return {hand_on(dy, into, 0), dx, dgain};
  }
};

}  // namespace tally::ops
