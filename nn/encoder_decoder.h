#pragma once
#include "nn/embedding.h"
#include "nn/language_model.h"
#include "nn/stack.h"

namespace tally::nn {

/// An encoder whose output a decoder reads while it writes. Vaswani et al. 2017, arXiv:1706.03762;
/// Raffel et al. 2019, arXiv:1910.10683 (T5).
///   memory = encoder(c E[source])      y = decoder(c E[ids], memory)
///   logits = s y Wh^T (+ bh), Wh = E when tied       one table E for both sides
class EncoderDecoder : public LanguageModel {
 public:
  struct Options {
    int64_t vocab = 0;
    /// `encoder` must not be causal; `decoder` must be, and its d_memory be the encoder's d_model.
    StackOptions encoder, decoder;
    double embedding_scale = 1;  // c; sqrt(d_model) in 2017
    double output_scale = 1;     // s; d_model^-0.5 in T5 1.0, whose head is tied
    bool tied_head = true, head_bias = false;
    int64_t padding_id = -1;  // its row of the table gets no gradient from ids (-1: none)
    ops::LossOptions loss;
  };
  /// Parameters are allocated, not set.
  EncoderDecoder(const Options& o, DType dtype, Device device);

  using Memory = Stack::Memory;
  /// What the decoder reads.   source (B,S) of i64   mask (B,S) of u8, 1 = a token, or undefined
  Memory encode(const Tensor& source, const Tensor& mask = {}, Generator* dropout = nullptr);
  /// Logits (B,T,V) of the token after each of ids (B,T) of i64.
  Tensor logits(const Memory& memory, const Tensor& ids, Generator* dropout = nullptr);
  /// Mean of -log p(target) over the targets that are not -100, of ids the targets shifted right
  /// (data/span_corruption.h), with what Options::loss adds.   targets (B,T) of i64
  Tensor loss(const Memory& memory, const Tensor& ids, const Tensor& targets,
              Generator* dropout = nullptr);

  /// A cache with the keys and values of the memory in it, for `capacity` tokens.
  StackCache make_cache(const Memory& memory, int64_t capacity) const;
  /// Logits (B,V) of the token after the last of `ids`, which follow what is in the cache.
  Tensor next_logits(const Tensor& ids, StackCache& cache);
  void visit(Visitor& v) override;
  /// As logits() and loss() of what encode() makes of the source.
  Tensor batch_logits(const ModelBatch& batch) override;
  Tensor batch_loss(const ModelBatch& batch, int64_t count, Generator* dropout,
                    Tensor* stats) override;
  std::unique_ptr<LanguageModel> on_meta() const override;
  void set_recompute(const std::vector<bool>& layers) override;
  int64_t vocab() const override { return options_.vocab; }
  int64_t context() const override { return options_.encoder.context; }
  Device device() const override { return embedding.weight.device(); }
  DType dtype() const override { return embedding.weight.dtype(); }

  Embedding embedding;
  Stack encoder, decoder;
  Tensor head_weight, head_bias;  // weight absent when tied

 private:
  Tensor embed(const Tensor& ids);
  Tensor decode(const Memory& memory, const Tensor& ids, Generator* dropout);
  Tensor loss_of(const Memory& memory, const ModelBatch& batch, int64_t count, Generator* dropout,
                 Tensor* stats);
  Tensor outgoing(const Tensor& y) const;
  const Tensor& head() const { return options_.tied_head ? embedding.weight : head_weight; }
  Options options_;
};

}  // namespace tally::nn
