#pragma once
#include <memory>

#include "optim/choices.h"
#include "optim/optimizer.h"

namespace tally::optim {

/// An optimizer and its numbers; those that it does not know are left alone.
struct OptimizerChoice {
  OptimizerKind kind = OptimizerKind::adamw;
  double weight_decay = 0.1;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double momentum = 0.95;  // sgd, muon, rmsprop
  bool nesterov = true;    // sgd, muon
  bool amsgrad = false;    // adamw, adam
  MuonScaling muon_scaling = MuonScaling::match_rms;
  int64_t precondition_every = 10, precondition_longest = 8192;  // shampoo, soap
  double rest_lr_scale = 1;    // of what a matrix optimizer leaves to AdamW
  double hidden_lr_scale = 1;  // of the hidden matrices, whose decoupled decay stays what it was
  Bf16Update bf16_update = Bf16Update::masters;  // of parameters in bf16
  uint64_t seed = 1;                             // of rounding at random
};

/// The optimizer for a model. Muon, Shampoo and SOAP get the hidden matrices; embeddings, positions,
/// the head and all vectors go to AdamW (lecture claims L86, L88). The decay reaches the same
/// parameters under every optimizer (decay_groups). Error for rounding at random of other weights than
/// bf16's.
std::unique_ptr<Optimizer> make_optimizer(nn::Module& model, const OptimizerChoice& choice);

/// Bytes that an optimizer keeps from step to step.
double state_bytes(Optimizer& optimizer);

}  // namespace tally::optim
