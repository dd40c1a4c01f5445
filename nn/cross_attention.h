#pragma once
#include "nn/attention.h"

namespace tally::nn {

// Attention of one sequence over another, as an op made of ops. Vaswani et al. 2017,
// arXiv:1706.03762, sec. 3.2.3: a decoder over the output of its encoder; with memory = x, the
// attention of an encoder over itself.
//
//   q = x Wq^T + bq      k, v = m Wk^T + bk, m Wv^T + bv      split into heads
//   o = attention(q, k, v), the keys that the mask hides and the bias of the scores as given;
//       where x is the memory too, tokens of one document alone may see each other
//   y = o Wo^T + bo
//
// With Wv absent, Wk holds both as rows [k | v]: one product instead of two.
//
//   x, y (B,T,D)    m, memory (B,S,E)    Wq (H K, D)    Wk, Wv (G K, E) or Wk (2 G K, E)
//   Wo (D, H K)     biases of the rows or absent
//   mask (B,S) of u8, 1 = a token, 0 = padding, or absent    bias broadcasts to (B,H,T,S), or absent
//   documents (B,S) i64, as ops::Attention, or absent
struct CrossAttentionLayer {
  static constexpr const char* name = "cross_attention_layer";
  struct Attrs {
    int64_t heads = 1, kv_heads = 1, head_dim = 1;
    ops::Attention::Attrs attention;
  };
  struct Saved {
    ops::Linear::Saved q, k, v, out;
    ops::Attention::Saved attention;
    Attrs attrs;
    int64_t keys = 0;
    bool fused = false;
  };
  /// Keys and values of the memory by head.   k, v (B,S,G,K)
  struct Memory {
    Tensor k, v;
  };

  static Memory project(const Tensor& memory, const Tensor& w_k, const Tensor& b_k,
                        const Tensor& w_v, const Tensor& b_v, const Attrs& a, Saved* s);
  /// y of queries over keys and values that are there.
  static Tensor attend(const Tensor& x, const Memory& memory, const Tensor& w_q, const Tensor& b_q,
                       const Tensor& w_out, const Tensor& b_out, const Tensor& mask,
                       const Tensor& bias, const Tensor& documents, const Attrs& a, Saved* s);

  static Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& w_q, const Tensor& b_q,
                        const Tensor& w_k, const Tensor& b_k, const Tensor& w_v, const Tensor& b_v,
                        const Tensor& w_out, const Tensor& b_out, const Tensor& mask,
                        const Tensor& bias, const Tensor& documents, const Attrs& a, Saved* s);

  static std::array<Tensor, 13> backward(const Tensor& dy, Saved&& s, const Into<13>& into = {});
};

struct CrossAttentionOptions {
  int64_t d_model = 0, heads = 1, kv_heads = 1, head_dim = 0;
  int64_t d_memory = 0;  // width of the memory; 0: d_model
  bool qkv_bias = false, out_bias = false;
  bool fused = false;           // one matrix [k | v] instead of two
  bool causal = false;          // over itself alone: a token sees itself and what came before it
  std::optional<double> scale;  // of q.k; 1 / sqrt(K) where not given (T5: 1)
  double dropout = 0;
  /// Over itself: a window, global tokens; the cap of the scores. `causal`, `scale` and `dropout` stand
  /// above.
  ops::AttentionOptions scores;
};

/// The layer with its parameters; CrossAttentionLayer above says what it computes.
class CrossAttention : public Module {
 public:
  using Memory = CrossAttentionLayer::Memory;

  CrossAttention(const CrossAttentionOptions& o, DType dtype, Device device);
  /// x, y (B,T,D)   memory (B,S,E)   mask (B,S), bias of the scores, documents (B,S), or undefined
  /// `dropout` takes a stream of random numbers when given, and is off when null.
  Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& mask, const Tensor& bias,
                 Generator* dropout, const Tensor& documents = {}) const;
  /// Keys and values of a memory, to be computed once for all tokens that are generated. Not
  /// recorded.
  Memory remember(const Tensor& memory) const;
  /// The output for queries over such a memory. Not recorded: for generation.
  Tensor recall(const Tensor& x, const Memory& memory, const Tensor& mask,
                const Tensor& bias) const;
  /// The next tokens of sequences over themselves; appends their keys and values to the cache. Not
  /// recorded.
  Tensor forward_cached(const Tensor& x, const Tensor& bias, KVCache::Layer& cache) const;
  void visit(Visitor& v) override;

  Matrix q, k, v, out;  // v is absent when fused

 private:
  CrossAttentionLayer::Attrs attrs() const;
  CrossAttentionOptions options_;
};

}  // namespace tally::nn
