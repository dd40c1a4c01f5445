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
  NormGain norm_gain = NormGain::gamma;
  double dropout = 0;
  /// Factor of the scores; 0: 1 / sqrt(K + R). YaRN's multiplies it (rope_softmax_scale).
  double scale = 0;
  ops::RotaryPairs rope_pairs = ops::RotaryPairs::interleaved;
  bool sink = false, off_by_one = false;  // as AttentionOptions
  /// What queries see and the cap of their scores; the scale stands above.
  ops::AttentionOptions scores;
};

/// Multi-head latent attention: keys and values of all heads come from one small latent, so that the
/// latent is all a cache has to keep. DeepSeek-AI 2024 (DeepSeek-V2), arXiv:2405.04434, sec. 2.1;
/// lecture claim L96.
///
///   c, r  = norm(x Wc^T), x Wr^T                  latent (C) and shared key (R), rows of `kv_down`
///   k, v  = c Wk[h]^T, c Wv[h]^T                  per head h, rows of `kv_up`
///   q, s  = x Wq^T, or norm(x Wa^T) Wq^T          per head, parts K and R
///   score = scale (q.k + rope(s).rope(r))         causal, of the own document
///   y     = softmax(score, sink) v Wo^T
///
///   x, y (B,T,D)   q (H (K + R), D or q_lora_rank)   q_down (q_lora_rank, D)
///   kv_down (C + R, D)   kv_up (H (K + M), C)   out (D, H M)   sink (H)
///
/// forward() makes k and v: least work where many tokens meet. forward_cached() never does: with
/// q.k = q.(Wk c) = (Wk^T q).c it moves Wk to the query and Wv behind the sum, and what is left is
/// attention with one key/value head of C + R numbers a token, the cache itself: however many heads
/// there are, a KVCache::Layer of (B, capacity, 1, C + R) that has k alone.
class LatentAttention : public Module {
 public:
  /// Error unless the sizes are 1 or more (q_lora_rank: 0 or more), and R is even.
  LatentAttention(const LatentAttentionOptions& o, DType dtype, Device device);
  /// `dropout` takes a stream of random numbers when given, and is off when null.
  Tensor forward(const Tensor& x, const Positions& positions, Generator* dropout = nullptr) const;
  /// The same for the next tokens of sequences that are in the cache; appends them. Not recorded:
  /// for generation.
  Tensor forward_cached(const Tensor& x, const Positions& positions, KVCache::Layer& cache) const;
  KVCache::Layer make_cache(int64_t batch, int64_t capacity) const;
  /// Tokens that a cache has to keep for this layer; 0: all.
  int64_t window() const { return cached_window(options_.scores); }
  /// C + R, what it keeps of each.
  int64_t cached_numbers() const { return options_.kv_lora_rank + options_.qk_rope_head_dim; }
  void visit(Visitor& v) override;

  Tensor q_down, q, kv_down, kv_up, out;  // weights, rows are outputs; q_down absent without a rank
  Tensor sink;                            // a parameter or, with off_by_one, zeros; or undefined
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
