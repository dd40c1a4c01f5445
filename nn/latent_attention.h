#pragma once
#include "nn/attention.h"
#include "nn/norm.h"

namespace tally::nn {

/// Sizes of multi-head latent attention, with the names of published configurations.
struct LatentAttentionOptions {
  int64_t d_model = 0, heads = 1;
  int64_t kv_lora_rank = 0;      // C, of the latent that keys and values come from
  int64_t q_lora_rank = 0;       // of the queries' latent; 0: queries straight from x
  int64_t qk_nope_head_dim = 0;  // K, of a head's part without positions
  int64_t qk_rope_head_dim = 0;  // R, of the part that turns; one key of it serves all heads
  int64_t v_head_dim = 0;        // M
  double norm_eps = 1e-6;
  double dropout = 0;
  /// Factor of the scores; 0: 1 / sqrt(K + R). YaRN's multiplies it (rope_softmax_scale).
  double scale = 0;
  ops::RotaryPairs rope_pairs = ops::RotaryPairs::interleaved;
};

/// What latent attention keeps of past tokens: the latent and the turned key, C + R numbers each,
/// however many heads there are.   rows (B, capacity, C + R)
class LatentCache {
 public:
  LatentCache(int64_t batch, int64_t capacity, int64_t numbers, DType dtype, Device device)
      : rows_(empty({batch, capacity, numbers}, dtype, device)) {}
  /// Copies the rows of the next tokens (B, T, C + R) behind those that are there. Error when the
  /// cache is full.
  void append(const Tensor& rows);
  /// What has been appended, (B, S, C + R): a view.
  Tensor rows() const { return rows_.narrow(1, 0, length_); }
  int64_t length() const { return length_; }
  void clear() { length_ = 0; }

 private:
  Tensor rows_;
  int64_t length_ = 0;
};

/// Multi-head latent attention: keys and values of all heads come from one small latent, so that the
/// latent is all a cache has to keep. DeepSeek-AI 2024 (DeepSeek-V2), arXiv:2405.04434, sec. 2.1;
/// lecture claim L96.
///
///   c, r  = norm(x Wc^T), x Wr^T                  latent (C) and shared key (R), rows of `kv_down`
///   k, v  = c Wk[h]^T, c Wv[h]^T                  per head h, rows of `kv_up`
///   q, s  = x Wq^T, or norm(x Wa^T) Wq^T          per head, parts K and R
///   score = scale (q.k + rope(s).rope(r))         causal
///   y     = softmax(score) v Wo^T
///
///   x, y (B,T,D)   q (H (K + R), D or q_lora_rank)   q_down (q_lora_rank, D)
///   kv_down (C + R, D)   kv_up (H (K + M), C)   out (D, H M)
///
/// forward() makes k and v: least work where many tokens meet. forward_cached() never does: with
/// q.k = q.(Wk c) = (Wk^T q).c it moves Wk to the query and Wv behind the sum, and what is left is
/// attention with one key/value head of C + R numbers a token, the cache itself.
class LatentAttention : public Module {
 public:
  /// Error unless the sizes are 1 or more (q_lora_rank: 0 or more), and R is even.
  LatentAttention(const LatentAttentionOptions& o, DType dtype, Device device);
  /// `dropout` takes a stream of random numbers when given, and is off when null.
  Tensor forward(const Tensor& x, const Positions& positions, Generator* dropout = nullptr) const;
  /// The same for the next tokens of sequences that are in the cache; appends them. Not recorded:
  /// for generation.
  Tensor forward_cached(const Tensor& x, const Positions& positions, LatentCache& cache) const;
  LatentCache make_cache(int64_t batch, int64_t capacity) const;
  void visit(Visitor& v) override;

  Tensor q_down, q, kv_down, kv_up, out;  // weights, rows are outputs; q_down absent without a rank
  Norm kv_norm;
  Norm q_norm;  // its weight is absent without a rank

 private:
  /// Of each head, before and after the turn, and what the cache holds of these tokens.
  struct Parts {
    Tensor plain, turned;  // queries (B,T,H,K) and (B,T,H,R)
    Tensor latent, key;    // (B,T,C) and (B,T,1,R)
  };
  Parts project(const Tensor& x, const Positions& positions) const;
  ops::AttentionOptions options() const;
  LatentAttentionOptions options_;
};

}  // namespace tally::nn
