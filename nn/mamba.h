#pragma once
#include "nn/matrix.h"
#include "nn/module.h"
#include "nn/recurrent_state.h"

namespace tally::nn {

struct MambaOptions {
  int64_t d_model = 0;
  int64_t inner = 0;    // C, channels: 2 d_model as published
  int64_t state = 16;   // N, numbers a channel
  int64_t dt_rank = 0;  // R
  int64_t conv_width = 4;
  bool conv_bias = true;
  bool norms = false;  // RMSNorm of step, B and C: Jamba
  double norm_eps = 1e-6;
};

/// Mamba's first block: a selective state space in place of attention. Gu and Dao 2023,
/// arXiv:2312.00752, section 3.4; Jamba (Lieber et al. 2024, arXiv:2403.19887) interleaves it 7:1
/// with attention.
///
///   u, z     = x Win^T, apart
///   u        = silu(conv(u))                        a short causal convolution by channel
///   r, B, C  = u Wp^T, apart                        (norms of each)
///   dt       = softplus(r Wdt^T + bdt)
///   o        = selective_scan(u, dt, -exp(a), B, C, d)   core/ops/selective_scan.h
///   y        = (o silu(z)) Wo^T
///
///   x, y (B,T,D)   in (2C, D), rows [u | z]   conv (C, W), bias (C)   parameters (R + 2N, C)
///   dt (C, R), bias (C)   decay_log a (C, N)   skip d (C)   out (D, C)   norms (R), (N), (N)
class Mamba : public Module {
 public:
  /// Error unless the sizes are 1 or more.
  Mamba(const MambaOptions& o, DType dtype, Device device);
  Tensor forward(const Tensor& x, const Tensor& documents = {}) const;
  /// The same for the next tokens of sequences that `past` stands for. Not recorded: for generation.
  Tensor forward_cached(const Tensor& x, RecurrentState& past, const Tensor& documents = {}) const;
  void visit(Visitor& v) override;

  Tensor in, parameters, decay_log, skip, out;
  Matrix conv, dt;
  Tensor dt_norm, b_norm, c_norm;  // undefined without norms

 private:
  Tensor mix(const Tensor& x, RecurrentState* past, const Tensor& documents) const;
  MambaOptions options_;
};

}  // namespace tally::nn
