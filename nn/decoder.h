#pragma once
#include <memory>
#include <vector>

#include "nn/block.h"
#include "nn/embedding.h"
#include "nn/language_model.h"
#include "nn/layer_inputs.h"
#include "nn/linear.h"
#include "nn/positions.h"

namespace tally::nn {

/// Which word vectors are scaled to length 1 whenever they are used.
enum class FixNorm : uint8_t {
  none,
  head,  ///< the rows of the head: NormHead. Yang et al. 2023 (Baichuan 2), arXiv:2309.10305
  both   ///< those of the embedding too: FixNorm. Nguyen and Salazar 2019, arXiv:1910.05895
};

/// A decoder-only language model: embedding, blocks, final norm, head.
///   x = s E[ids] (Wi^T) (+ P[positions])  ->  (norm)  ->  blocks  ->  (norm)
///   logits = cap(c x (Wo^T) Wh^T (+ bh)), Wh = E when tied
class Decoder : public LanguageModel {
 public:
  struct Options {
    int64_t vocab = 0, context = 0, layers = 0;
    int64_t embedding_dim = 0;  // E; 0: as wide as the stream, without products
    Block::Options block;
    PositionOptions positions;
    /// What the layers see, in turn, from the first again when it ends; empty: the block's.
    std::vector<ops::AttentionOptions> attention;
    /// Shared attention: layers without a window have heads of this size and so many for keys
    /// (0: as the others), and keys that are values; the last `taking` layers take keys and values,
    /// with feed-forward layers of taking_d_ff (0: as the others).
    int64_t global_head_dim = 0, global_kv_heads = 0, taking = 0, taking_d_ff = 0;
    /// What mixes the tokens of the layers, in turn; empty: attention. block.delta_net and
    /// block.mamba say how.
    std::vector<Mixer> mixers;
    /// By layer, from the first again when the list ends: times block.residual.scale. Empty: 1.
    std::vector<double> residual_scales;
    bool final_norm = true, embedding_norm = false;  // of the blocks' kind
    FixNorm fix_norm = FixNorm::none;
    bool tied_head = false, head_bias = false;
    double embedding_scale = 1;  // s: Gemma sqrt(D)
    double logit_scale = 1;      // c: Command R, Granite
    double embedding_dropout = 0;
    double label_smoothing = 0, z_loss = 0, max_z_loss = 0;
    /// Which layers have block.experts: from `first_experts` on every `experts_every`-th.
    int64_t first_experts = 0, experts_every = 1;
    double load_balance_loss = 0;  // weight of the layers' sum
    double final_soft_cap = 0;     // of the logits, 0: none
    /// The first tokens that all see, each other too: a prefix language model, whose loss begins
    /// behind them. Raffel et al. 2019, arXiv:1910.10683, section 3.2.3. In block.attention too.
    int64_t prefix = 0;
    /// The token that ends a document: tokens see their own alone (core/ops/document_ids.h); -1: none.
    int64_t document_end = -1;
  };
  /// Parameters are allocated, not set: see models/build.h.
  Decoder(const Options& o, DType dtype, Device device);

  /// What the head multiplies: the residual stream after the final norm, times c.   ids (B,T) of i64   returns (B,T,D), (B,T,E) with an embedding_dim
  /// `dropout` gives the masks of a training step; null: evaluation.
  /// `balance` receives the sum of the layers' load-balance losses where they are wanted.
  Tensor hidden(const Tensor& ids, Generator* dropout = nullptr, Tensor* balance = nullptr);
  /// logits (B,T,V)
  Tensor logits(const Tensor& ids);
  /// Mean over the targets that are not -100 of -log p(target), plus z_loss * (log Z)^2 and
  /// max_z_loss * (largest logit)^2, without ever storing the logits. `count`: what the sum is divided by; 0: the targets of this batch, so
  /// that micro-batches that share a count add up to the exact mean of the whole.   targets (B,T)
  /// of i64
  /// `stats` receives what the loss adds up besides (ops::LossStats). Targets inside a prefix, which
  /// the tokens see, count for nothing, and for nothing in `count` either.
  Tensor loss(const Tensor& ids, const Tensor& targets, int64_t count = 0,
              Generator* dropout = nullptr, Tensor* stats = nullptr);
  /// Logits (B,V) of the token after the last of `ids`, which follow what is in the cache.
  Tensor next_logits(const Tensor& ids, KVCache& cache);
  KVCache make_cache(int64_t batch, int64_t capacity) const;

  void visit(Visitor& v) override;
  Tensor batch_logits(const ModelBatch& batch) override { return logits(batch.ids); }
  Tensor batch_loss(const ModelBatch& batch, int64_t count, Generator* dropout,
                    Tensor* stats) override {
    return loss(batch.ids, batch.targets, count, dropout, stats);
  }
  std::unique_ptr<LanguageModel> on_meta() const override;
  void set_recompute(const std::vector<bool>& layers) override { recompute = layers; }
  /// Moves the biases of routers.
  void after_update() const override;
  void forget_step() const override;
  const Options& options() const { return options_; }
  int64_t vocab() const override { return options_.vocab; }
  int64_t context() const override { return options_.context; }
  Device device() const override { return embedding.weight.device(); }
  DType dtype() const override { return embedding.weight.dtype(); }

  Embedding embedding;
  std::optional<LayerInputs> layer_inputs;  // with block.layer_input
  PositionScheme position;
  Norm embedding_norm;  // BLOOM; kind none without
  std::vector<std::unique_ptr<Block>> blocks;
  Norm final_norm;                 // kind none without
  Tensor head_shift;               // () in front of the head, absent without block.shifts
  Tensor head_weight, head_bias;   // weight absent when tied
  Matrix project_in, project_out;  // (D, E), (E, D) where the embedding has a width of its own
  /// By block: true where a training step keeps the block's input alone and computes the rest again
  /// in the backward pass (autograd/checkpoint.h). Shorter than the stack: false for the rest.
  std::vector<bool> recompute;

 private:
  Tensor embed(const Tensor& ids, int64_t first, Generator* dropout);
  std::array<Tensor, 2> through_block(size_t i, const Tensor& x, const Positions& places,
                                      Generator* dropout) const;
  struct Stack;
  PositionScheme::Pass pass(int64_t first, const Tensor& ids, const Tensor& seen) const;
  Tensor with_outdated(const Tensor& ids, KVCache& cache) const;
  Tensor head() const;
  Tensor final_hidden(const Tensor& x) const;
  Tensor logits_of(const Tensor& h) const;
  ops::LossOptions loss_options() const;
  Options options_;
};

}  // namespace tally::nn
