#pragma once
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"

namespace tally::nn {

/// A pre-norm decoder block: two branches that add to the residual stream.
///   h = x + dropout(attention(norm1(x)))
///   y = h + dropout(mlp(norm2(h)))            x, h, y (B,T,D)
/// Xiong et al. 2020, arXiv:2002.04745 (placement); lecture claims L8, L9.
class Block : public Module {
 public:
  struct Options {
    NormKind norm = NormKind::rms_norm;
    double norm_eps = 1e-5;
    bool norm_bias = false;
    double dropout = 0;  // of what a branch adds
    AttentionOptions attention;
    FeedForwardOptions mlp;
  };
  Block(const Options& o, DType dtype, Device device);

  Tensor forward(const Tensor& x, const Positions& positions, Generator* dropout) const;
  Tensor forward_cached(const Tensor& x, const Positions& positions, KVCache::Layer& cache) const;
  void visit(Visitor& v) override;

  Norm attention_norm;
  Attention attention;
  Norm mlp_norm;
  FeedForward mlp;

 private:
  double dropout_;
};

}  // namespace tally::nn
