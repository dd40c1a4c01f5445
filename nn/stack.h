#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "nn/cross_attention.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"
#include "nn/positions.h"

namespace tally::nn {

/// What the layers of a stack are made of.
struct StackOptions {
  int64_t layers = 0, context = 0;
  NormOptions norm;
  bool post_norm = false;           // x = N(x + F(x)) instead of x = x + F(N(x))
  bool embedding_norm = false;      // of what enters, behind its positions (BERT)
  bool final_norm = true;           // of what leaves
  CrossAttentionOptions attention;  // of a layer over its own sequence
  int64_t d_memory = 0;             // width of the memory that each layer looks at, too; 0: none
  FeedForwardOptions mlp;
  PositionOptions positions;                  // none, learned, sinusoidal, t5_bias
  double dropout = 0, embedding_dropout = 0;  // of what a branch adds; of what enters
  /// What the layers see of their own sequence, in turn, from the first again when it ends (as
  /// CrossAttentionOptions::scores); empty: attention's.
  std::vector<ops::AttentionOptions> scores;
};

/// The keys and values that generation keeps: of the tokens so far and of the memory.
struct StackCache {
  KVCache tokens;
  std::vector<CrossAttention::Memory> memory;  // by layer
  Tensor memory_mask;
};

/// Layers of attention and feed-forward over a sequence: those of an encoder, which sees all of it,
/// or, where attention is causal, of a decoder that reads a memory. Vaswani et al. 2017,
/// arXiv:1706.03762, sec. 3.1.
///
///   a layer    x = x + attention(N(x)), [x = x + cross_attention(N(x), memory),] x = x + mlp(N(x))
///   x (B,T,D)   memory (B,S,E)   masks (B,T) and (B,S) of u8, 1 = a token, or undefined
///
/// The bias of T5's positions is one table for all layers; cross-attention has no positions.
class Stack : public Module {
 public:
  Stack(const StackOptions& o, DType dtype, Device device);

  struct Memory {
    Tensor values, mask;
  };
  /// The stream behind the last norm, for embedded tokens x. `dropout`: null in evaluation.
  /// `documents` (B,T) i64: tokens see their own alone; undefined: all are of one.
  Tensor forward(const Tensor& x, const Tensor& mask, const Memory& memory = {},
                 Generator* dropout = nullptr, const Tensor& documents = {}) const;
  StackCache make_cache(const Memory& memory, int64_t batch, int64_t capacity) const;
  /// The same for the next tokens of a causal stack. Not recorded: for generation.
  Tensor forward_cached(const Tensor& x, StackCache& cache) const;
  void visit(Visitor& v) override;

  struct Layer : Module {
    Layer(const StackOptions& o, DType dtype, Device device);
    void visit(Visitor& v) override;
    Norm attention_norm;
    CrossAttention attention;
    Norm cross_norm;
    std::optional<CrossAttention> cross_attention;
    Norm mlp_norm;
    FeedForward mlp;
  };
  PositionScheme position;
  Norm embedding_norm;
  std::vector<std::unique_ptr<Layer>> layers;
  Norm final_norm;
  /// By layer: as Decoder::recompute.
  std::vector<bool> recompute;

 private:
  template <class Own, class Over>
  Tensor through(const Layer& layer, Tensor x, const Own& own, const Over& over,
                 Generator* dropout) const;
  Tensor enter(const Tensor& x, int64_t first, Generator* dropout) const;
  Tensor leave(const Tensor& x) const;
  StackOptions options_;
  DType dtype_;
  Device device_;
};

}  // namespace tally::nn
