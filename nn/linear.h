#pragma once
#include "autograd/functional.h"
#include "nn/module.h"

namespace tally::nn {

/// y = x W^T + b.   x (..., in)   y (..., out)   weight (out, in)   bias (out), absent unless asked
/// for
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool with_bias, DType dtype, Device device)
      : weight(empty({out, in}, dtype, device)) {
    if (with_bias) bias = empty({out}, dtype, device);
  }
  Tensor forward(const Tensor& x) const { return linear(x, weight, bias); }
  void visit(Visitor& v) override {
    v.parameter("weight", weight);
    v.parameter("bias", bias);
  }
  Tensor weight, bias;
};

}  // namespace tally::nn
