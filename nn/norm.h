#pragma once
#include "autograd/functional.h"
#include "nn/module.h"

namespace tally::nn {

enum class NormKind : uint8_t { layer_norm, rms_norm };

/// LayerNorm (weight and, where asked for, bias) or RMSNorm (weight) over the last axis.
///   x, y (..., D)   weight, bias (D)
class Norm : public Module {
 public:
  Norm(NormKind kind, int64_t d_model, double eps, bool with_bias, DType dtype, Device device)
      : weight(empty({d_model}, dtype, device)), kind_(kind), eps_(eps) {
    check(kind == NormKind::layer_norm || !with_bias,
          "norm: RMSNorm has no bias; set norm_bias to false or norm to layer_norm");
    if (with_bias) bias = empty({d_model}, dtype, device);
  }
  Tensor forward(const Tensor& x) const {
    return kind_ == NormKind::rms_norm ? rms_norm(x, weight, eps_)
                                       : layer_norm(x, weight, bias, eps_);
  }
  void visit(Visitor& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  Tensor weight, bias;

 private:
  NormKind kind_;
  double eps_;
};

}  // namespace tally::nn
