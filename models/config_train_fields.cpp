// What a configuration document may say of a training: as models/config_fields.cpp.
#include <array>

#include "models/config.h"

namespace tally {

std::span<const Field<TrainConfig>> train_fields() {
  using T = TrainConfig;
  constexpr double kAny = 1e15;
  const auto number = [](const char* name, auto member, double min, double max, const char* doc) {
    return Field<T>{name, member, min, max, doc};
  };
  static const std::array fields = {
      number("batch", &T::batch, 1, 1 << 20, "sequences in one forward pass"),
      number("seq", &T::seq, 0, 1 << 30, "tokens in a sequence; 0: the model's context"),
      number("accumulation", &T::accumulation, 1, 1 << 20, "forward passes in one step"),
      number("steps", &T::steps, 1, kAny, "optimizer steps"),
      number("lr", &T::lr, 0, 1e3, "peak learning rate"),
      number("final_lr_fraction", &T::final_lr_fraction, 0, 1,
             "where cosine ends, as a fraction of lr (Chinchilla 2022, arXiv:2203.15556: 0.1)"),
      number("warmup", &T::warmup, 0, kAny, "steps of linear rise to lr"),
      enum_field<&T::schedule>("schedule", "after the warm-up: constant or cosine"),
      number("weight_decay", &T::weight_decay, 0, 1e3,
             "decoupled, on matrices only: not on embeddings, norms and biases (Loshchilov and "
             "Hutter 2019, arXiv:1711.05101)"),
      number("beta1", &T::beta1, 0, 0.999999, "AdamW's average of the gradient"),
      number("beta2", &T::beta2, 0, 0.999999999, "AdamW's average of its square"),
      number("eps", &T::eps, 1e-30, 1,
             "AdamW's, added to the root; above 0, or a zero gradient is 0 / 0"),
      number("clip", &T::clip, 0, 1e9, "largest global gradient norm; 0: no limit"),
      Field<T>{"recompute", &T::recompute, 0, 0,
               "layers that keep their input alone and compute the rest again in the backward "
               "pass: none, all, or a list such as 0-5,8; same bits, less memory, one more forward "
               "pass of these layers (Chen et al. 2016, arXiv:1604.06174)"},
      number("seed", &T::seed, 0, kAny, "of initial weights, dropout, data order and samples"),
      number("log_every", &T::log_every, 1, kAny, "steps between lines of metrics.jsonl"),
      number("eval_every", &T::eval_every, 0, kAny,
             "steps between evaluations; 0: only at the end"),
      number("val_fraction", &T::val_fraction, 0, 0.5,
             "share of the documents held out for validation: every round(1 / share)-th"),
      number("eval_batches", &T::eval_batches, 1, kAny,
             "batches in one evaluation on the way; the last one, at the end, takes all held-out "
             "tokens"),
      number("checkpoint_every", &T::checkpoint_every, 0, kAny,
             "steps between checkpoints; 0: only at the end"),
      number("sample_every", &T::sample_every, 0, kAny,
             "steps between samples; 0: only at the end"),
      number("sample_tokens", &T::sample_tokens, 1, 1 << 20, "tokens in a sample"),
      Field<T>{"probes", &T::probes, 0, 0,
               "what to measure on logged steps: residual_rms, sublayer_rms, log_z, max_logit, "
               "attention_entropy, attention_saturation, grad_norm, update_ratio, router_load "
               "(docs/probes.md)"},
  };
  return fields;
}

}  // namespace tally
