#pragma once
#include <optional>

#include "nn/attention.h"
#include "nn/norm.h"

namespace tally::nn {

/// Keys and values that a layer of a pass hands to later ones.   (B,S,G,K)
struct KeyValues {
  Tensor k, v;
};

struct SharedAttentionOptions {
  int64_t d_model = 0, heads = 1, kv_heads = 1, head_dim = 0;
  bool takes = false;           // keys and values of an earlier layer, without products of its own
  bool keys_as_values = false;  // values are the keys' product, without their gain and rotation
  bool value_norm = false;      // values are normalised too, without a gain
  bool qk_norm = false;         // queries and keys are, each head, with a gain
  NormOptions norm;             // their eps and gain
  double dropout = 0;
  ops::RotaryPairs rope_pairs = ops::RotaryPairs::half_split;
  /// What queries see, the scale and the cap of their scores.
  ops::AttentionOptions scores;
};

/// Grouped attention for models whose layers share keys and values: a layer makes them, and later
/// ones take them, so that a cache keeps them once. Brandon et al. 2024 (cross-layer attention),
/// arXiv:2405.12981; as Gemma 3n and 4 have it.
///
///   q    = rope(norm(x Wq^T))
///   k    = rope(norm(x Wk^T))   v = norm'(x Wv^T), or norm'(x Wk^T)   where the layer makes them
///   y    = attention(q, k, v) Wo^T                                    norm' has no gain
///
///   x, y (B,T,D)   q (H K, D)   k, v (G K, D)   out (D, H K)   gains (K)
///
/// Composed of ops, each with its own backward: the gradients of k and v come together on the tape
/// from all layers that read them.
class SharedAttention : public Module {
 public:
  SharedAttention(const SharedAttentionOptions& o, DType dtype, Device device);
  /// `shared` receives the layer's keys and values, or is what an earlier layer put there. `dropout`
  /// takes a stream of random numbers when given, and is off when null.
  Tensor forward(const Tensor& x, const Positions& positions, KeyValues& shared,
                 Generator* dropout = nullptr) const;
  /// The same for the next tokens of sequences; a layer that makes keys and values appends them to
  /// `cache` and hands on what these tokens see. Not recorded: for generation.
  Tensor forward_cached(const Tensor& x, const Positions& positions, KeyValues& shared,
                        KVCache::Layer& cache) const;
  bool takes() const { return options_.takes; }
  /// Of no token where the layer takes what another one keeps.
  KVCache::Layer make_cache(int64_t batch, int64_t capacity) const;
  /// Tokens that a cache has to keep for this layer; 0: all.
  int64_t window() const { return cached_window(options_.scores); }
  void visit(Visitor& v) override;

  Tensor q, k, v, out;  // weights; k and v absent where a layer takes, v where keys are values
  std::optional<Norm> q_norm, k_norm;

 private:
  Tensor queries(const Tensor& x, const Positions& positions) const;
  KeyValues make(const Tensor& x, const Positions& positions) const;
  Tensor attend(const Tensor& queries, const KeyValues& seen, const Positions& positions,
                const ops::AttentionOptions& options) const;
  SharedAttentionOptions options_;
};

}  // namespace tally::nn
