#pragma once
#include "core/ops/attention/attention.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/gate.h"
#include "core/ops/linear.h"
#include "core/ops/rope.h"
#include "nn/kv_cache.h"
#include "nn/matrix.h"
#include "nn/module.h"
#include "nn/qk_norm.h"

namespace tally::nn {

/// Heads first, first + 1, ... of a product's output x (B,T,rows): a view (B,T,heads,K).
Tensor heads_of(const Tensor& x, int64_t first, int64_t heads, int64_t head_dim);
/// Dropout of attention in training, for which it takes a stream; none where `dropout` is null.
ops::AttentionDropout attention_dropout(double p, Generator* dropout);

// Causal self-attention with grouped key/value heads, as an op made of ops.
//
//   q, k, v = x Wq^T + bq, x Wk^T + bk, x Wv^T + bv       split into heads
//   q, k, v = min(max(., -c), c)                           where clip c > 0: MPT, OLMo
//   q, k    = norm(q), norm(k)                             where asked for: nn/qk_norm.h
//   q, k    = rope(q), rope(k)                             where a table is given
//   o       = attention(q, k, v), with the bias where given   core/ops/attention/
//   o       = o sigmoid(x Wg^T)                            where Wg is given: Qiu et al. 2025,
//                                                          arXiv:2505.06708
//   o       = o + shift                                    where given: nn/block.h
//   y       = o Wo^T + bo
//
// With Wk and Wv absent, Wq holds all three as rows [q | k | v]: one product instead of three, and
// the heads are read through strides straight from its output. Rotation happens in place: nothing
// else needs the values before it.
//
//   x, y (B,T,D)    Wq (H K, D)    Wk, Wv (G K, D)    or Wq (H K + 2 G K, D)    Wo (D, H K)
//   table as ops::Rope or absent    biases of the rows or absent
//   bias of the scores: broadcasts to (B,H,T,S), or absent
//   gain and shift of either norm: (K), full width (H K) and (G K), or absent
//   sink (H), as ops::Attention, or absent    Wg (H K, D) or absent
//   documents (B,S) i64, as ops::Attention, or absent    shift () or absent
struct AttentionLayer {
  static constexpr const char* name = "attention_layer";
  struct Attrs {
    int64_t heads = 1, kv_heads = 1, head_dim = 1;
    ops::Rope::Attrs rope;
    ops::Attention::Attrs attention;
    QKNorm::Attrs qk_norm;
    double clip = 0;  // of queries, keys and values; 0: none
  };
  struct Saved {
    ops::Linear::Saved q, k, v, to_gate, out;
    ops::Clamp::Saved q_clip, k_clip, v_clip;
    ops::Attention::Saved attention;
    ops::Gate::Saved gate;
    ops::Add::Saved shift;
    QKNorm::Saved q_norm, k_norm;
    SavedTensor table;
    Attrs attrs;
    bool fused = false, gated = false, shifted = false;
  };
  /// Queries, keys and values by head, rotated.   q (B,T,H,K)   k, v (B,T,G,K)
  struct Heads {
    Tensor q, k, v;
  };

  static Heads project(const Tensor& x, const Tensor& w_q, const Tensor& b_q, const Tensor& w_k,
                       const Tensor& b_k, const Tensor& w_v, const Tensor& b_v, const Tensor& table,
                       const QKNorm::Weights& norm, const Attrs& a, Saved* s);

  static Tensor forward(const Tensor& x, const Tensor& w_q, const Tensor& b_q, const Tensor& w_k,
                        const Tensor& b_k, const Tensor& w_v, const Tensor& b_v,
                        const Tensor& w_out, const Tensor& b_out, const Tensor& table,
                        const Tensor& bias, const Tensor& q_gain, const Tensor& q_shift,
                        const Tensor& k_gain, const Tensor& k_shift, const Tensor& sink,
                        const Tensor& w_gate, const Tensor& documents, const Tensor& shift,
                        const Attrs& a, Saved* s);

  /// Behind attention: the gate and the shift, where there are some, and the output.
  /// heads (B,T,H,K)
  static Tensor finish(const Tensor& x, const Tensor& heads, const Tensor& w_gate,
                       const Tensor& shift, const Tensor& w_out, const Tensor& b_out, Saved* s);

  static std::array<Tensor, 19> backward(const Tensor& dy, Saved&& s, const Into<19>& into = {});
};

/// The last `count` along an axis of what is told of all keys, those that a cache hands out; undefined
/// stays undefined.
Tensor of_last_keys(const Tensor& t, int axis, int64_t count);
/// The score without a value that heads (H) have in the softmax: learned, 0 with `off_by_one`, or
/// undefined. Error where it should be both.
Tensor make_sink(bool learned, bool off_by_one, int64_t heads, DType dtype, Device device);
/// Tokens that a cache has to keep for queries that see this; 0: all.
int64_t cached_window(const ops::AttentionOptions& o);

struct KeyValues;  // nn/shared_attention.h

/// What attention is told of the positions of its tokens, and a layer of its place in the stack.
struct Positions {
  Tensor table;                 // of ops::Rope, or undefined: no rotation
  int64_t offset = 0;           // the row of the table that the first token takes
  Tensor bias;                  // added to the scores, (H,T,S), or undefined
  Tensor distances;             // sinusoids of the distances 0 .. S-1, (S,D); for xl_relative
  Tensor documents{};           // of all keys so far, (B,S) i64, or undefined: one text
  KeyValues* shared = nullptr;  // what layers of one kind hand on; for shared attention
  Tensor layer_input{};         // (B,T,P), this layer's: nn/layer_inputs.h
};

struct AttentionOptions {
  int64_t d_model = 0, heads = 1, kv_heads = 1, head_dim = 0;
  bool qkv_bias = false, out_bias = false;
  bool fused = true;  // one matrix [q | k | v] instead of three
  double dropout = 0;
  ops::RotaryPairs rope_pairs = ops::RotaryPairs::half_split;
  double alibi = 0;             // as ops::AttentionOptions
  QKNorm::Attrs qk_norm;        // of queries and keys
  bool xl_relative = false;     // Transformer-XL's positions; see Attention
  bool sink = false;            // a learned score of each head in the softmax, without a value
  bool off_by_one = false;      // a sink of score 0 that is not learned: softmax over 1 + sum
  bool gate = false;            // each head's output times the sigmoid of a product with x
  double clip = 0;              // queries, keys and values are cut at -clip and clip; 0: none
  bool shift = false;           // a learned number added in front of the output's product
  bool own_projections = true;  // false: the rows of q, k and v are in a block's input
  /// What queries see, the scale and the cap of their scores; `alibi` and `dropout` stand above.
  ops::AttentionOptions scores;
};

/// The layer with its parameters; AttentionLayer above says what it computes. With xl_relative the
/// score of query t for the key at distance i is ((q + u).k + (q + w).r[i]) / sqrt(K) with u, w
/// learned and r = distances Wr^T: Dai et al. 2019, arXiv:1901.02860, sec. 3.3.
class Attention : public Module {
 public:
  Attention(const AttentionOptions& o, DType dtype, Device device);
  /// x, y (B,T,D). `dropout` takes a stream of random numbers when given, and is off when null.
  Tensor forward(const Tensor& x, const Positions& positions, Generator* dropout) const;
  /// The same for the next tokens of sequences whose keys and values are in the cache; appends
  /// theirs. Not recorded: for generation.
  Tensor forward_cached(const Tensor& x, const Positions& positions, KVCache::Layer& cache) const;
  /// Attention of heads over what the cache holds of the past and over theirs, which it appends.
  Tensor attend_cached(const AttentionLayer::Heads& heads, const Positions& positions,
                       const ops::AttentionOptions& options, KVCache::Layer& cache) const;
  void visit(Visitor& v) override;
  /// Tokens that a cache has to keep for this layer; 0: all.
  int64_t window() const;

  Matrix q, k, v, out;  // k and v are absent when fused
  QKNorm::Weights qk_norm;
  Tensor sink;   // (H), a parameter or, with off_by_one, zeros; or undefined
  Matrix gate;   // (H K, D), or undefined
  Tensor shift;  // (), or undefined
  // xl_relative alone: u and w (H K), Wr (H K, D) without a bias.
  Tensor content_bias, position_bias;
  Matrix relative;

  AttentionLayer::Attrs attrs() const;

 private:
  Tensor forward_relative(const Tensor& x, const Positions& positions,
                          const ops::AttentionOptions& options, KVCache::Layer* cache) const;
  AttentionOptions options_;
};

}  // namespace tally::nn
