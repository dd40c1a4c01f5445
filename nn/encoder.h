#pragma once
#include "nn/embedding.h"
#include "nn/language_model.h"
#include "nn/linear.h"
#include "nn/stack.h"

namespace tally::nn {

/// An encoder: every token sees every other. Devlin et al. 2018, arXiv:1810.04805 (BERT).
///   x = E[ids] (+ P[positions]) (+ S[types]) -> stack -> h
///   logits = N(act(h Wt^T + bt)) E^T + bh        the head that guesses masked tokens
class Encoder : public LanguageModel {
 public:
  struct Options {
    int64_t vocab = 0;
    int64_t types = 0;        // kinds of segments, such as question and answer; 0: none
    int64_t padding_id = -1;  // its row of the table gets no gradient from ids (-1: none)
    /// The token that ends a document: tokens see their own alone (core/ops/document_ids.h); -1: none.
    int64_t document_end = -1;
    StackOptions stack;
    bool head_transform = true;  // N(act(h Wt^T + bt)); else h itself
    ops::ActivationKind head_activation = ops::ActivationKind::gelu;
    ops::LossOptions loss;
  };
  /// Parameters are allocated, not set.
  Encoder(const Options& o, DType dtype, Device device);

  /// h (B,T,D) of ids (B,T) of i64. `types` (B,T) of i64, needed where the model has some; `mask`
  /// (B,T) of u8, 1 = a token, 0 = padding, undefined: no padding.
  Tensor hidden(const Tensor& ids, const Tensor& types = {}, const Tensor& mask = {},
                Generator* dropout = nullptr);
  /// Logits (B,T,V) of the token at each place.
  Tensor logits(const Tensor& ids, const Tensor& types = {}, const Tensor& mask = {},
                Generator* dropout = nullptr);
  /// Mean of -log p(target) over the targets that are not -100, which masked_tokens(...) of data/
  /// makes, with what Options::loss adds. targets (B,T) of i64
  Tensor loss(const Tensor& ids, const Tensor& targets, const Tensor& types = {},
              const Tensor& mask = {}, Generator* dropout = nullptr);
  void visit(Visitor& v) override;
  /// As logits() and loss(), all tokens being of the first type where the model has types.
  Tensor batch_logits(const ModelBatch& batch) override;
  Tensor batch_loss(const ModelBatch& batch, int64_t count, Generator* dropout,
                    Tensor* stats) override;
  std::unique_ptr<LanguageModel> on_meta() const override;
  void set_recompute(const std::vector<bool>& layers) override { stack.recompute = layers; }
  int64_t vocab() const override { return options_.vocab; }
  int64_t context() const override { return options_.stack.context; }
  Device device() const override { return embedding.weight.device(); }
  DType dtype() const override { return embedding.weight.dtype(); }

  Embedding embedding;
  std::optional<Embedding> types;
  Stack stack;
  std::optional<Linear> transform;
  std::optional<Norm> transform_norm;
  Tensor head_bias;  // (V)

 private:
  Tensor first_types(const Tensor& ids) const;
  Tensor loss_of(const Tensor& scores, const Tensor& targets, int64_t count, Tensor* stats) const;
  Options options_;
};

}  // namespace tally::nn
