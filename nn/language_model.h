#pragma once
#include <memory>
#include <vector>

#include "core/random.h"
#include "nn/module.h"

namespace tally::nn {

/// What a model of any architecture reads at once, ids of i64. Undefined: not there.
struct ModelBatch {
  Tensor ids;      // (B,T), of a decoder or of an encoder that stands alone
  Tensor targets;  // (B,T), -100: nothing is asked there; for a loss
  Tensor source;   // (B,S), what the encoder of an encoder-decoder reads
  Tensor mask;  // of what an encoder reads, in u8: 1 = a token, 0 = padding; undefined: no padding
};

/// What training, evaluation and files need of a model, whatever its architecture.
class LanguageModel : public Module {
 public:
  /// Logits (B,T,V) of the token that is asked for at each place of ids. Not for training.
  virtual Tensor batch_logits(const ModelBatch& batch) = 0;
  /// Mean of -log p(target) over the targets that are not -100, with what the model's options add.
  /// `count`: what the sum is divided by; 0: the targets of this batch. `dropout` gives the masks of a
  /// training step; null: evaluation. `stats` receives what is added up besides (ops::LossStats).
  virtual Tensor batch_loss(const ModelBatch& batch, int64_t count, Generator* dropout,
                            Tensor* stats) = 0;
  /// The same model on meta: shapes without values.
  virtual std::unique_ptr<LanguageModel> on_meta() const = 0;
  /// By layer, an encoder's before its decoder's: true where a training step keeps the layer's input
  /// alone and computes the rest again in the backward pass (autograd/checkpoint.h). Shorter than
  /// the model: false for the rest.
  virtual void set_recompute(const std::vector<bool>& layers) = 0;

  /// What an update moves besides the parameters. At the end of a step.
  virtual void after_update() const {}
  /// Forgets what a step counted for it, where the step is not taken.
  virtual void forget_step() const {}

  virtual int64_t vocab() const = 0;
  virtual int64_t context() const = 0;
  virtual Device device() const = 0;
  virtual DType dtype() const = 0;
};

}  // namespace tally::nn
