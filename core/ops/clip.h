#pragma once
#include <span>

#include "core/op.h"
#include "core/ops/no_gradient.h"

namespace tally::ops {

/// What sums of squares are kept in: f64 for all narrow types, so that gradients of 1e20 do not
/// overflow.
template <class T>
using wide_t = std::conditional_t<std::is_same_v<acc_t<T>, float>, double, acc_t<T>>;
constexpr DType wide_dtype(DType t) {
  return acc_dtype(t) == DType::f32 ? DType::f64 : acc_dtype(t);
}

// sum += sum_i x[i]^2: one tensor's part of the global norm of the gradients.
//   x (...)    sum (1) in wide_dtype, on the device
struct SquareSum {
  static constexpr const char* name = "square_sum";
  struct Call {
    static constexpr const char* name = "square_sum";
    static constexpr Kind kind = Kind::elementwise;
    In x;
    InOut sum;
    static constexpr const char* formula = "sum = sum + sum_i x[i]^2";
    static constexpr const char* operands = "x, sum";
    auto views() const { return std::tie(x, sum); }
    DType dtype() const { return x.dtype; }
    Cost cost() const {
      return flops(2.0 * static_cast<double>(x.numel()) + 1) + reads(x) + updates(sum);
    }
    template <class T>
    void reference() const {
      using W = wide_t<T>;
      W total(0);
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t d = 0; d < x.cols(); ++d) {
          const W value = W(acc_t<T>(x.row<T>(i)[d]));
          total += value * value;
        }
      }
      sum.at<W>(0) += total;
    }
  };
  static void into(const Tensor& sum, const Tensor& x) {
    check_defined(name, "x", x);
    check_defined(name, "the sum", sum);
    check(is_floating(x.dtype()), "square_sum: needs floating-point numbers; got ", x.dtype(),
          in_module());
    check(sum.numel() == 1 && sum.dtype() == wide_dtype(x.dtype()),
          "square_sum: the sum must be one number in ", wide_dtype(x.dtype()), "; got ",
          sum.shape(), " in ", sum.dtype(), in_module());
    run(x.device(), Call{x, sum});
  }
};

// From the sum of squares to the factor that every gradient is multiplied by. Pascanu, Mikolov &
// Bengio 2012, arXiv:1211.5063, algorithm 1; with PyTorch's 1e-6.
//
//   norm = s sqrt(sum),   factor = s min(1, max_norm / (norm + 1e-6))
//
//   sum, norm (1) in f64    factor (1)    max_norm: infinity for no clipping
//   s: what the gradients are still to be multiplied by, e.g. one over the number of tokens
//
// All on the device: on meta the calls are listed although no number exists. A sum that is not
// finite gives a norm that is not: the training loop looks at it and refuses the step.
struct ClipFactor {
  static constexpr const char* name = "clip_factor";
  struct Result {
    Tensor factor, norm;
  };
  struct Call {
    static constexpr const char* name = "clip_factor";
    static constexpr Kind kind = Kind::elementwise;
    In sum;
    Out factor, norm;
    double max_norm, scale;
    static constexpr const char* formula =
        "norm = s sqrt(sum), factor = s min(1, max_norm / (norm + 1e-6))";
    static constexpr const char* operands = "sum, factor, norm";
    auto views() const { return std::tie(sum, factor, norm); }
    DType dtype() const { return factor.dtype; }
    Cost cost() const { return flops(5) + reads(sum) + writes(factor, norm); }
    template <class T>
    void reference() const {
      using W = wide_t<T>;
      const W n = W(scale) * sqrt(sum.at<W>(0)), f = W(max_norm) / (n + W(1e-6));
      norm.at<W>(0) = n;
      factor.at<T>(0) = T(W(scale) * (f > W(1) ? W(1) : f));  // a NaN stays one
    }
  };
  /// `dtype`: of the factor, that of the moments which it will meet in the update.
  static Result of(const Tensor& sum, double max_norm, DType dtype, double scale = 1) {
    check_defined(name, "the sum", sum);
    check(max_norm > 0,
          "clip_factor: the largest norm must be above 0 (infinity: no clipping); got ", max_norm);
    check(std::isfinite(scale) && scale > 0,
          "clip_factor: the scale must be finite and above 0; got ", scale);
    check(sum.numel() == 1 && sum.dtype() == wide_dtype(dtype),
          "clip_factor: the sum must be one number in ", wide_dtype(dtype), "; got ", sum.shape(),
          " in ", sum.dtype());
    Result r{empty({1}, dtype, sum.device()), empty_like(sum)};
    run(sum.device(), Call{sum, r.factor, r.norm, max_norm, scale});
    return r;
  }
};

/// Clip factor and norm over all gradients together, in their order: the same bits every time. They
/// must be on one device and hold one type; undefined ones are left out.
inline ClipFactor::Result clip_global_norm(std::span<const Tensor> gradients, double max_norm,
                                           double scale = 1) {
  Tensor sum, first;
  for (const Tensor& g : gradients) {
    if (!g.defined()) continue;
    check_no_gradient("clip_global_norm", "a gradient", g);
    if (!sum.defined()) {
      first = g;
      sum = zeros({1}, wide_dtype(g.dtype()), g.device());
    }
    check(g.dtype() == first.dtype(), "clip_global_norm: gradients must hold one type; got ",
          first.dtype(), " and ", g.dtype());
    SquareSum::into(sum, g);
  }
  check(sum.defined(), "clip_global_norm: there is no gradient; was backward run?");
  return ClipFactor::of(sum, max_norm, acc_dtype(first.dtype()), scale);
}

/// Position of the first gradient that holds a NaN or an infinity, to name its tensor; -1: none.
inline int64_t first_not_finite(std::span<const Tensor> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor sum = zeros({1}, wide_dtype(gradients[i].dtype()), gradients[i].device());
    SquareSum::into(sum, gradients[i]);
    if (!std::isfinite(sum.item())) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace tally::ops
