#pragma once
#include "core/ops/layout.h"
#include "core/ops/no_gradient.h"
#include "core/random.h"

namespace tally::ops {

/// The random numbers of a rounding: 16 bits an element, a pure function of (seed, stream, element).
/// Element i has half i mod 2 of word i / 2 of the Philox stream.
class RoundingBits {
 public:
  RoundingBits(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
  uint32_t at(int64_t element) {
    const auto i = static_cast<uint64_t>(element);
    if (i / 8 != block_) {
      block_ = i / 8;
      words_ = Philox::block(seed_, stream_, block_);
    }
    return words_[i / 2 % 4] >> (i % 2 * 16) & 0xffffu;
  }

 private:
  uint64_t seed_, stream_, block_ = ~uint64_t{0};
  std::array<uint32_t, 4> words_{};
};

// float32 to bfloat16, up or down at random, so that the mean is right. Gupta et al. 2015,
// arXiv:1502.02551, section 3; for weights in bf16 Zamirai et al. 2020, arXiv:2010.06192.
//
//   forward    y[i] = the bf16 number above |x[i]| with probability p, else that below or at it,
//              p = (|x| - below) / (above - below) = (the 16 bits of x that bf16 lacks) / 2^16
//              so E y[i] = x[i]; a number that bf16 holds stays itself
//   backward   none: an optimizer runs it beside the tape
//
//   x, y (...), one shape, any strides
//
// The bits come from (seed, stream + step): the same on every backend, for any number of threads and
// after a resume. Beyond the largest bf16 number the one above is infinite, as in rounding to nearest;
// NaN stays one. float64 comes by way of float32.
struct StochasticRound {
  static constexpr const char* name = "stochastic_round";
  struct Attrs {
    uint64_t seed = 1, stream = 0;
    int64_t step = 1;  // of the update that is rounded
    uint64_t stream_of_step() const {
      return stream + static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15u;
    }
  };

  static bf16 rounded(float x, uint32_t bits) {
    if (!std::isfinite(x)) return bf16(x);
    bf16 y;
    y.bits = static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + bits) >> 16);
    return y;
  }

  struct Call {
    static constexpr const char* name = "stochastic_round";
    static constexpr Kind kind = Kind::movement;
    static constexpr bool any_strides = true;
    static constexpr bool moves_any_type = true;
    In x;
    Out y;
    Attrs attrs;
    void rebind(const StepChange& change) { attrs.step = change.step; }
    static constexpr const char* formula = "y = x in bf16, up or down at random";
    static constexpr const char* operands = "x, y";
    auto views() const { return std::tie(x, y); }
    DType dtype() const { return x.dtype; }
    Cost cost() const { return reads(x) + writes(y); }
    template <class T>
    void reference() const {
      RoundingBits bits(attrs.seed, attrs.stream_of_step());
      int64_t element = 0;
      walk(y.shape, std::array{x.strides, y.strides}, [&](const auto& at) {
        const uint32_t drawn = bits.at(element++);
        const T& from = x.pointer<T>()[at[0]];
        if constexpr (std::is_floating_point_v<T>)
          y.pointer<bf16>()[at[1]] = rounded(static_cast<float>(from), drawn);
        else
          y.pointer<T>()[at[1]] = from;  // a proof type, or a number that bf16 holds
      });
    }
  };

  /// Rounds into y, which is in bf16 (of proof types: in that of x).
  static void into(const Tensor& y, const Tensor& x, const Attrs& a) {
    check_defined(name, "x", x);
    check_defined(name, "y", y);
    check_no_gradient(name, "x", x);
    check(x.shape() == y.shape(), name, ": y must have the shape of x ", x.shape(), "; got ",
          y.shape(), in_module());
    const bool proof = x.dtype() >= DType::dual;
    check(
        proof || ((x.dtype() == DType::f32 || x.dtype() == DType::f64) && y.dtype() == DType::bf16),
        name, ": rounds f32 or f64 to bf16; got ", x.dtype(), " and ", y.dtype(), in_module());
    check(a.step >= 1, name, ": the first step has number 1; got ", a.step);
    run(x.device(), Call{x, y, a});
  }
};

}  // namespace tally::ops
