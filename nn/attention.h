#pragma once
#include "core/ops/attention/attention.h"
#include "core/ops/linear.h"
#include "core/ops/rope.h"
#include "nn/kv_cache.h"
#include "nn/module.h"

namespace tally::nn {

// Causal self-attention with grouped key/value heads, as an op made of ops.
//
//   q, k, v = x Wq^T + bq, x Wk^T + bk, x Wv^T + bv       split into heads
//   q, k    = rope(q), rope(k)                             where a table is given
//   o       = attention(q, k, v)                           core/ops/attention/
//   y       = o Wo^T + bo
//
// With Wk and Wv absent, Wq holds all three as rows [q | k | v]: one product instead of three, and
// the heads are read through strides straight from its output. Rotation happens in place: nothing
// else needs the values before it.
//
//   x, y (B,T,D)    Wq (H K, D)    Wk, Wv (G K, D)    or Wq (H K + 2 G K, D)    Wo (D, H K)
//   table as ops::Rope or absent    biases of the rows or absent
struct AttentionLayer {
  static constexpr const char* name = "attention_layer";
  struct Attrs {
    int64_t heads = 1, kv_heads = 1, head_dim = 1;
    ops::Rope::Attrs rope;
    ops::Attention::Attrs attention;
  };
  struct Saved {
    ops::Linear::Saved q, k, v, out;
    ops::Attention::Saved attention;
    SavedTensor table;
    Attrs attrs;
    bool fused = false;
  };
  /// Queries, keys and values by head, rotated.   q (B,T,H,K)   k, v (B,T,G,K)
  struct Heads {
    Tensor q, k, v;
  };

  static Heads project(const Tensor& x, const Tensor& w_q, const Tensor& b_q, const Tensor& w_k,
                       const Tensor& b_k, const Tensor& w_v, const Tensor& b_v, const Tensor& table,
                       const Attrs& a, Saved* s);

  static Tensor forward(const Tensor& x, const Tensor& w_q, const Tensor& b_q, const Tensor& w_k,
                        const Tensor& b_k, const Tensor& w_v, const Tensor& b_v,
                        const Tensor& w_out, const Tensor& b_out, const Tensor& table,
                        const Attrs& a, Saved* s);

  static std::array<Tensor, 10> backward(const Tensor& dy, Saved&& s, const Into<10>& into = {});
};

struct AttentionOptions {
  int64_t d_model = 0, heads = 1, kv_heads = 1, head_dim = 0;
  bool qkv_bias = false, out_bias = false;
  bool fused = true;  // one matrix [q | k | v] instead of three
  double dropout = 0;
  ops::RotaryPairs rope_pairs = ops::RotaryPairs::half_split;
};

/// The layer with its parameters; AttentionLayer above says what it computes.
class Attention : public Module {
 public:
  Attention(const AttentionOptions& o, DType dtype, Device device);
  /// x, y (B,T,D); `table` as AttentionLayer, undefined without RoPE. `dropout` takes a stream of
  /// random numbers when given, and is off when null.
  Tensor forward(const Tensor& x, const Tensor& table, Generator* dropout) const;
  /// The same for the next tokens of sequences whose keys and values are in the cache; appends
  /// theirs. Not recorded: for generation.
  Tensor forward_cached(const Tensor& x, const Tensor& table, KVCache::Layer& cache) const;
  void visit(Visitor& v) override;

  struct Matrix {
    Tensor weight, bias;
  };
  Matrix q, k, v, out;  // k and v are absent when fused

 private:
  AttentionLayer::Attrs attrs() const;
  AttentionOptions options_;
};

}  // namespace tally::nn
