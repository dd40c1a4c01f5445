#pragma once
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace tally::nn {

// The two branches of a parallel block as one op: attention and feed-forward layer of the same
// normalized x, whose first products are one. Chowdhery et al. 2022 (PaLM), arXiv:2204.02311,
// section 2; lecture claims L38, L39.
//
//   [q | k | v | gate | up] = x Wi^T + bi                                  one product
//   q, k = norm(q), norm(k)                                  where asked for: nn/qk_norm.h
//   o = attention(rope(q), rope(k), v),   h = act(gate) * up               read through strides
//   y = o Wo^T + bo + h Wd^T + bd                     the second product adds to the first's result
//
//   x, y (B,T,D)    Wi (H K + 2 G K + 2 F, D), without a gate (.. + F, D)   Wo (D, H K)   Wd (D, F)
//   biases of the rows or absent    table, bias of the scores, gains and shifts of the norms of
//   queries and keys, documents: as AttentionLayer
//
// Against two layers that are added: x is read once, the sum is never a pass of its own, and dx is
// one product instead of two that add up.
struct ParallelLayer {
  static constexpr const char* name = "parallel_layer";
  struct Attrs {
    AttentionLayer::Attrs attention;
    FeedForwardLayer::Attrs mlp;
    int64_t d_ff = 0;
    int64_t attention_rows() const {
      return (attention.heads + 2 * attention.kv_heads) * attention.head_dim;
    }
    int64_t rows() const { return attention_rows() + (mlp.gated ? 2 : 1) * d_ff; }
  };
  struct Saved {
    ops::Linear::Saved in, out, down;
    ops::Attention::Saved attention;
    ops::Activation::Saved activation;
    ops::Gate::Saved gating;
    QKNorm::Saved q_norm, k_norm;
    SavedTensor table;
    Attrs attrs;
  };

  /// x Wi^T + bi, its queries and keys turned; the heads are views into it, but for normalized ones.
  static Tensor project(const Tensor& x, const Tensor& w_in, const Tensor& b_in,
                        const Tensor& table, const QKNorm::Weights& norm, const Attrs& a,
                        AttentionLayer::Heads& heads, Saved* s);
  /// What comes behind attention, o (B,T,H,K).
  static Tensor finish(const Tensor& projected, const Tensor& o, const Tensor& w_out,
                       const Tensor& b_out, const Tensor& w_down, const Tensor& b_down,
                       const Attrs& a, Saved* s);
  static Tensor forward(const Tensor& x, const Tensor& w_in, const Tensor& b_in,
                        const Tensor& w_out, const Tensor& b_out, const Tensor& w_down,
                        const Tensor& b_down, const Tensor& table, const Tensor& bias,
                        const Tensor& q_gain, const Tensor& q_shift, const Tensor& k_gain,
                        const Tensor& k_shift, const Tensor& documents, const Attrs& a, Saved* s);
  static std::array<Tensor, 14> backward(const Tensor& dy, Saved&& s, const Into<14>& into = {});
};

}  // namespace tally::nn
