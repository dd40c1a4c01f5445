#pragma once
// Every differentiable function. Each is one line in the .cpp of its group: apply<Op> runs the op and
// records it when a tape is open.
#include "autograd/functional_basic.h"
#include "core/ops/activation_functions.h"
#include "core/ops/attention/options.h"
#include "core/ops/loss_row.h"
#include "core/ops/rope.h"
#include "core/random.h"

namespace tally {

/// f(x) of every element, `function` as listed in core/ops/activation_functions.h; `parameter` is
/// beta of swish, alpha of elu.
Tensor activation(const Tensor& x, ops::ActivationKind function, double parameter = 1);
/// Attention of queries over keys: softmax(scale q.k) v, causal unless said otherwise.
///   q (B,T,H,K)   k (B,S,G,K)   v (B,S,G,M)   any strides   returns (B,T,H,M)
/// H is a multiple of G; causal needs S >= T, the last T keys being the tokens of q. `mask` (u8,
/// 1 = sees) and `bias`, added to the scores, broadcast to (B,H,T,S). A row that sees nothing gives
/// 0.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const ops::AttentionOptions& options = {}, const Tensor& mask = {},
                 const Tensor& bias = {});
/// Mean cross entropy of logits against targets, with the options' terms; one number in the type
/// that logits accumulate in ((...) of them for Reduction::none). 0 where no target counts.
///   logits (..., V)   targets (...) i64, each a class or options.ignore_index; Error for another
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const ops::LossOptions& options = {});
/// The same and, second, what was added up: see ops::LossStats. It has no gradient.
std::array<Tensor, 2> cross_entropy_with_stats(const Tensor& logits, const Tensor& targets,
                                               const ops::LossOptions& options = {});
/// x with each element 0 with probability p and divided by 1 - p otherwise, added to `residual`
/// where given. Takes a stream of `generator`, but none for p = 0, which returns x itself (or x +
/// residual).
Tensor dropout(const Tensor& x, double p, Generator& generator, const Tensor& residual = {});
/// Rows of a table by id, times `scale`.   ids (...) i64   weight (V, D)   y (..., D)
/// Error for an id outside 0..V-1. The row `padding_id` gets no gradient (-1: none).
Tensor embedding(const Tensor& ids, const Tensor& weight, double scale = 1,
                 int64_t padding_id = -1);
/// Gated linear unit: act(a) b.   a (gate), b (up) (..., F), or a (..., 2F) = [gate | up] and no b
/// y (..., F)
Tensor gate(const Tensor& a, const Tensor& b, ops::ActivationKind function, double parameter = 1);
/// (x - mean) / sqrt(var + eps) * weight + bias over the last axis.
///   x (..., D)   weight, bias (D) or undefined   `unit_offset`: times 1 + weight
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5, bool unit_offset = false);
/// y = x W^T + b.   x (..., I)   weight (O, I)   bias (O) or undefined   y (..., O)
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// cross_entropy(linear(h, weight), targets, options) by blocks of rows: the logits never exist at
/// once.
///   h (..., D)   weight (V, D)   targets (...) i64   mean or sum
Tensor linear_cross_entropy(const Tensor& h, const Tensor& weight, const Tensor& targets,
                            const ops::LossOptions& options = {});
/// The same and, second, what was added up: see ops::LossStats. It has no gradient.
std::array<Tensor, 2> linear_cross_entropy_with_stats(const Tensor& h, const Tensor& weight,
                                                      const Tensor& targets,
                                                      const ops::LossOptions& options = {});
/// T5's bias of T queries, the last of S keys: bias[h,t,j] = table[bucket of the distance, h].
///   table (buckets, H)   returns (H, T, S), to be given to attention
/// One side: keys ahead share the bucket of distance 0.
Tensor relative_bias(const Tensor& table, int64_t queries, int64_t keys, bool two_sided = false,
                     int64_t max_distance = 128);
/// Transformer-XL's step from distances to keys: y[t,j] = x[t, S - T + t - j], 0 for keys ahead.
///   x (..., T, R)   y (..., T, S), S = keys   T <= S <= R
Tensor relative_shift(const Tensor& x, int64_t keys);
/// x / sqrt(mean(x^2) + eps) * weight over the last axis.
///   x (..., D)   weight (D) or undefined   `unit_offset`: times 1 + weight
///   `round_before_weight`: LLaMA's rounding in bf16
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-6,
                bool unit_offset = false, bool round_before_weight = false);
/// Rotary embedding of queries or keys.   x (B,T,H,K) any strides   table (P,R) of rope_table(...)
/// Token t is at position offset + t, or at positions (B,T) where given. Error past the table.
Tensor rope(const Tensor& x, const Tensor& table, const ops::Rope::Attrs& options = {},
            const Tensor& positions = {});
/// cap tanh(x / cap).   x (...)   Error unless the cap is finite and above 0
Tensor soft_cap(const Tensor& x, double cap);

}  // namespace tally
