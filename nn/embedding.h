#pragma once
#include "autograd/functional.h"
#include "nn/module.h"

namespace tally::nn {

/// Rows of a table by id.   ids (...) of i64   y (..., D)   weight (V, D)
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t d_model, DType dtype, Device device)
      : weight(empty({count, d_model}, dtype, device)) {}
  Tensor forward(const Tensor& ids) const { return embedding(ids, weight); }
  void visit(Visitor& v) override { v.parameter("weight", weight); }
  Tensor weight;
};

}  // namespace tally::nn
