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
      number("accumulation_start", &T::accumulation_start, 0, 1 << 20,
             "forward passes in the first step, from where they grow to accumulation, by multiples "
             "of this (Brown et al. 2020, arXiv:2005.14165); 0: no growth"),
      number("ramp_steps", &T::ramp_steps, 0, kAny, "steps in which they grow"),
      number("steps", &T::steps, 1, kAny, "optimizer steps"),
      enum_field<&T::optimizer>(
          "optimizer",
          "adamw, adam (decay as L2), sgd, lion, adafactor (PyTorch's form) or adafactor_t5, "
          "adagrad, rmsprop, nadam; muon, shampoo and soap take the hidden matrices and leave the "
          "rest to AdamW (docs/optim/README.md)"),
      number("lr", &T::lr, 0, 1e3, "peak learning rate; of noam the factor on d_model^-1/2"),
      number("final_lr_fraction", &T::final_lr_fraction, 0, 1,
             "where linear, cosine and wsd end, as a fraction of lr (Chinchilla 2022, "
             "arXiv:2203.15556: 0.1)"),
      number("warmup", &T::warmup, 0, kAny, "steps of linear rise to lr"),
      number("warmup_from", &T::warmup_from, 0, 1, "where the rise begins, as a fraction of lr"),
      enum_field<&T::schedule>("schedule",
                               "after the warm-up: constant, linear, cosine, inverse_sqrt, noam, "
                               "multi_step or wsd (docs/optim/schedules.md)"),
      enum_field<&T::schedule_unit>(
          "schedule_unit",
          "what the schedule counts: steps, or tokens, for a batch that grows: its points (warmup, "
          "steps, milestones, decay) are then the tokens seen before these steps, and the rate "
          "changes by tokens between them"),
      enum_field<&T::decay>("decay", "how wsd ends: linear, one_minus_sqrt or cosine"),
      number("decay_fraction", &T::decay_fraction, 0, 1, "share of the steps in which wsd decays"),
      Field<T>{"milestones", &T::milestones, 0, 0,
               "shares of the steps at which multi_step lowers the rate (DeepSeek-AI 2024, "
               "arXiv:2401.02954)"},
      number("milestone_factor", &T::milestone_factor, 0, 1, "by which it does"),
      number("weight_decay", &T::weight_decay, 0, 1e3,
             "decoupled, on matrices only: not on embeddings, norms and biases (Loshchilov and "
             "Hutter 2019, arXiv:1711.05101)"),
      number("beta1", &T::beta1, 0, 0.999999, "Adam's average of the gradient, Lion's and SOAP's"),
      number("beta2", &T::beta2, 0, 0.999999999,
             "Adam's average of its square, SOAP's and RMSprop's; Lion's slower average"),
      number("eps", &T::eps, 1e-30, 1,
             "AdamW's, added to the root; above 0, or a zero gradient is 0 / 0"),
      number("momentum", &T::momentum, 0, 0.999999, "of sgd, muon and rmsprop"),
      Field<T>{"nesterov", &T::nesterov, 0, 0, "of sgd and muon: Nesterov's form of momentum"},
      Field<T>{"amsgrad", &T::amsgrad, 0, 0,
               "of adamw and adam: divides by the largest second moment so far (Reddi et al. 2018, "
               "arXiv:1904.09237)"},
      enum_field<&T::muon_scaling>(
          "muon_scaling",
          "length of Muon's step: original, sqrt(max(1, rows / columns)), or match_rms, 0.2 "
          "sqrt(max(rows, columns)), which takes AdamW's lr (Liu et al. 2025, arXiv:2502.16982)"),
      number("precondition_every", &T::precondition_every, 1, kAny,
             "steps between new roots of Shampoo and new bases of SOAP"),
      number("precondition_longest", &T::precondition_longest, 1, 30000,
             "longest side of a matrix that Shampoo and SOAP treat"),
      number("rest_lr_scale", &T::rest_lr_scale, 0, 1e6,
             "learning rate of what muon, shampoo and soap leave to AdamW, as a multiple of lr"),
      enum_field<&T::bf16_update>(
          "bf16_update",
          "of a model in bf16: masters, f32 weights that are updated and rounded to nearest, or "
          "stochastic, no masters and 4 bytes a parameter less, bf16 weights that are rounded up "
          "or "
          "down at random (docs/precision.md)"),
      number("clip", &T::clip, 0, 1e9, "largest global gradient norm; 0: no limit"),
      Field<T>{
          "recompute", &T::recompute, 0, 0,
          "layers that keep their input alone and compute the rest again in the backward "
          "pass: none, all, or a list such as 0-5,8, an encoder's layers before its decoder's; "
          "same bits, less memory, one more forward pass of these layers (Chen et al. 2016, "
          "arXiv:1604.06174)"},
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
      number("keep_checkpoints", &T::keep_checkpoints, 1, 1 << 20,
             "newest checkpoints that are kept; older ones are removed"),
      Field<T>{
          "keep_best", &T::keep_best, 0, 0,
          "keeps the checkpoint with the lowest loss of an evaluation too (RUN/best names it), "
          "by the first evaluation set"},
      number("patience", &T::patience, 0, kAny,
             "early stop: evaluations in a row without a lower loss after which training ends; 0: "
             "never"),
      number("min_delta", &T::min_delta, 0, 1e3,
             "nats by which a loss must be lower than the best to count as lower"),
      number(
          "skip_deviations", &T::skip_deviations, 0, 1e6,
          "skips an update whose loss or gradient norm lies more than so many standard deviations "
          "above the mean of guard_window steps (docs/stability.md); 0: never"),
      number("spike_factor", &T::spike_factor, 0, 1e6,
             "counts steps whose loss or gradient norm is above so many times the median of "
             "guard_window steps; 0: does not count"),
      number("guard_window", &T::guard_window, 4, 1 << 16,
             "steps that skip_deviations and spike_factor compare with"),
      number("rollback_after", &T::rollback_after, 0, 1e6,
             "after so many steps in a row that were skipped or not finite, goes back to the last "
             "checkpoint and on with another order of the data; 0: stops at the first that is not "
             "finite"),
      number("sample_every", &T::sample_every, 0, kAny,
             "steps between samples (samples.jsonl): what a decoder writes from nothing, what an "
             "encoder "
             "or an encoder-decoder makes of the first held-out window or text; 0: none"),
      number("sample_tokens", &T::sample_tokens, 1, 1 << 20, "tokens in a sample"),
      number("corruption", &T::corruption, 0.01, 0.9,
             "share of the tokens that an encoder is asked for, or that are cut out of what an "
             "encoder-decoder reads (docs/objectives.md)"),
      number("mean_span", &T::mean_span, 1, 10000,
             "tokens in a row that are cut out of what an encoder-decoder reads, in the mean"),
      number("sentinels", &T::sentinels, 2, 1 << 16,
             "of an encoder-decoder: special tokens of a learnt tokenizer that stand for what is "
             "cut out"),
      Field<T>{
          "pairs", &T::pairs, 0, 0,
          "of an encoder-decoder: each line of the data is a text to read, a tab, and the text to "
          "write, each of at most seq tokens; nothing is cut out (docs/objectives.md)"},
      Field<T>{"probes", &T::probes, 0, 0,
               "what to measure on logged steps: residual_rms, sublayer_rms, log_z, max_logit, "
               "attention_entropy, attention_saturation, grad_norm, update_ratio, router_load, "
               "update_rank, momentum_rank, "
               "noise_scale "
               "(docs/probes.md)"},
  };
  return fields;
}

}  // namespace tally
