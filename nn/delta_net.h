#pragma once
#include "nn/matrix.h"
#include "nn/module.h"
#include "nn/recurrent_state.h"

namespace tally::nn {

struct DeltaNetOptions {
  int64_t d_model = 0;
  int64_t key_heads = 1, value_heads = 1;  // value_heads: a multiple of key_heads
  int64_t key_dim = 0, value_dim = 0;      // of a head
  int64_t conv_width = 4;
  double norm_eps = 1e-6;
};

/// Gated delta net: a linear recurrence in place of attention, whose memory of the past is one
/// matrix a head. Yang et al. 2024, arXiv:2412.06464; Qwen3-Next and Qwen3.5 interleave it 3:1 with
/// attention.
///
///   q, k, v = silu(conv(x Wqkv^T))                         a short causal convolution by channel
///   q, k    = q / |q|, k / |k|                             by head; each serves value_heads / key_heads
///   beta    = sigmoid(x Wb^T)                              how much of what a key holds is replaced
///   g       = -exp(a) softplus(x Wa^T + d)                 log of how much is kept
///   o       = gated_delta_rule(q, k, v, g, beta)           core/ops/gated_delta_rule.h
///   y       = (rms_norm(o) silu(x Wz^T)) Wo^T
///
///   x, y (B,T,D)   qkv (2 Hk K + Hv M, D), rows [q | k | v]   conv (2 Hk K + Hv M, W)
///   z (Hv M, D)   beta, decay (Hv, D)   decay_log a, decay_bias d (Hv)   norm (M)   out (D, Hv M)
class DeltaNet : public Module {
 public:
  /// Error unless the sizes are 1 or more and value_heads is a multiple of key_heads.
  DeltaNet(const DeltaNetOptions& o, DType dtype, Device device);
  Tensor forward(const Tensor& x, const Tensor& documents = {}) const;
  /// The same for the next tokens of sequences that `past` stands for. Not recorded: for generation.
  Tensor forward_cached(const Tensor& x, RecurrentState& past, const Tensor& documents = {}) const;
  void visit(Visitor& v) override;

  Tensor qkv, conv, z, beta, decay, decay_log, decay_bias, norm, out;

 private:
  Tensor mix(const Tensor& x, RecurrentState* past, const Tensor& documents) const;
  DeltaNetOptions options_;
};

}  // namespace tally::nn
