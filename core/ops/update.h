#pragma once
#include "core/op.h"
#include "core/ops/no_gradient.h"

namespace tally::ops {

// What the updates of an optimizer have in common. An update changes one parameter in place by its
// gradient and by what the optimizer keeps of it:
//
//   g = s dw + l2 w             s: the clip factor, one number on the device; absent: 1
//   w = keep w - ...            keep = 1 - lr decay where the decay is decoupled, else l2 = decay
//
// Decoupled decay (Loshchilov & Hutter 2017, arXiv:1711.05101) does not pass through the moments.

/// The numbers that every update takes.
struct UpdateAttrs {
  double lr = 1e-3;
  double weight_decay = 0;
  bool decoupled = true;
  int64_t step = 1;     // number of the step that is taken, 1 for the first
  double lr_scale = 1;  // times lr

  double rate() const { return lr * lr_scale; }
};

/// How an update sees gradient and weight: the decay is one of the two.
struct WeightDecay {
  bool decoupled = true;
  double keep = 1, l2 = 0;

  WeightDecay() = default;
  explicit WeightDecay(const UpdateAttrs& a)
      : decoupled(a.decoupled),
        keep(a.decoupled ? 1 - a.rate() * a.weight_decay : 1),
        l2(a.decoupled ? 0 : a.weight_decay) {}
  /// Operations an element, those of the clip factor included.
  double flops(const View& scale) const { return (decoupled ? 1 : 2) + (scale.defined() ? 1 : 0); }
  template <class A, class T>
  A gradient(const T& dw, const In& scale, const A& w) const {
    const A g = scale.defined() ? A(dw) * scale.at<A>(0) : A(dw);
    return decoupled ? g : g + A(l2) * w;
  }
  template <class A>
  A weight(const A& w) const {
    return decoupled ? w * A(keep) : w;
  }
};

/// Calls f(row, column) for each element.
template <class F>
void each_element(const View& v, F&& f) {
  for (int64_t i = 0; i < v.rows(); ++i) {
    for (int64_t d = 0; d < v.cols(); ++d) f(i, d);
  }
}

/// Error unless parameter, gradient and clip factor fit together. bf16 is refused: steps below 1/256
/// of a weight would be rounded away.
inline void check_update(const char* op, const Tensor& w, const Tensor& dw, const Tensor& scale) {
  check_defined(op, "the parameter", w);
  check_defined(op, "the gradient", dw);
  check_no_gradient(op, "the gradient", dw);
  check_no_gradient(op, "the scale", scale);
  check(dw.shape() == w.shape(), op, ": the gradient must have the shape of the parameter ",
        w.shape(), "; got ", dw.shape(), in_module());
  check(w.dtype() != DType::bf16 && w.dtype() != DType::f16, op,
        ": parameters must be f32 or f64; got ", w.dtype(), in_module(),
        "; small steps would be rounded away: keep an f32 master copy");
  check_same_dtype(op, w, dw);
  check(!scale.defined() || (scale.numel() == 1 && scale.dtype() == acc_dtype(w.dtype())), op,
        ": the scale must be one number in ", acc_dtype(w.dtype()), "; got ",
        scale.defined() ? scale.shape() : Shape{}, " in ",
        scale.defined() ? scale.dtype() : w.dtype(), in_module());
}
/// Error unless a tensor of the optimizer has the shape that it should and the accumulator's type.
inline void check_kept(const char* op, const char* what, const Tensor& w, const Tensor& kept,
                       const Shape& shape) {
  check_defined(op, what, kept);
  check(kept.shape() == shape, op, ": ", what, " must be ", shape, " for the parameter ", w.shape(),
        "; got ", kept.shape(), in_module());
  check(kept.dtype() == acc_dtype(w.dtype()), op, ": ", what, " must be in ", acc_dtype(w.dtype()),
        " for parameters in ", w.dtype(), "; got ", kept.dtype(), in_module());
}
inline void check_kept(const char* op, const char* what, const Tensor& w, const Tensor& kept) {
  check_kept(op, what, w, kept, w.shape());
}
/// Error unless finite and not negative.
inline void check_number(const char* op, const char* what, double value) {
  check(std::isfinite(value) && value >= 0, op, ": ", what,
        " must be finite and not negative; got ", value);
}
/// Error unless in 0..1 without 1: the share that a running mean keeps.
inline void check_share(const char* op, const char* what, double value) {
  check(value >= 0 && value < 1, op, ": ", what, " must be in 0..1, 1 left out; got ", value);
}
inline void check_attrs(const char* op, const UpdateAttrs& a) {
  check_number(op, "lr", a.lr);
  check_number(op, "weight_decay", a.weight_decay);
  check_number(op, "lr_scale", a.lr_scale);
  check(a.step >= 1, op, ": the first step has number 1; got ", a.step);
}

}  // namespace tally::ops
