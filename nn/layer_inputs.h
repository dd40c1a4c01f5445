#pragma once
#include "core/ops/activation.h"
#include "nn/norm.h"

namespace tally::nn {

/// Embeddings of a layer each, beside the one of the stream (Gemma 3n and 4, "per-layer
/// embeddings"): what a token is, and what the stream begins with, told to every layer anew.
///
///   e = ( sqrt(P) E[ids] + norm( x W^T / sqrt(D) ) ) / sqrt(2)      by layer, rows of P
///
///   ids (B,T) i64   x (B,T,D)   E (V, L P)   W (L P, D)   norm over P   e (B,T,L,P)
class LayerInputs : public Module {
 public:
  struct Sizes {
    int64_t vocab = 0, layers = 0, width = 0, d_model = 0;
  };
  LayerInputs(const Sizes& sizes, const NormOptions& norm, DType dtype, Device device);
  Tensor forward(const Tensor& ids, const Tensor& x) const;
  /// That of a layer, (B,T,P), of what forward() gives.
  static Tensor of_layer(const Tensor& all, int64_t layer);
  void visit(Visitor& v) override;

  Tensor embedding, projection;
  Norm norm;

 private:
  Sizes sizes_;
};

/// What a block makes of its embedding, behind its two branches:
///   y = x + norm( (act(x Wg^T) e) Wp^T )      x, y (B,T,D)   e (B,T,P)   Wg (P,D)   Wp (D,P)
class LayerInput : public Module {
 public:
  LayerInput(int64_t width, int64_t d_model, ops::ActivationKind act, const NormOptions& norm,
             DType dtype, Device device);
  Tensor forward(const Tensor& x, const Tensor& e) const;
  void visit(Visitor& v) override;

  Tensor gate, projection;
  Norm norm;

 private:
  ops::ActivationKind act_;
};

}  // namespace tally::nn
