#pragma once
// Every differentiable function. Each is one line in the .cpp of its group: apply<Op> runs the op and
// records it when a tape is open.
#include "autograd/functional_basic.h"
#include "core/ops/activation_functions.h"
#include "core/ops/attention/options.h"
#include "core/ops/loss_row.h"
#include "core/ops/moe_router.h"
#include "core/ops/rope.h"
#include "core/random.h"

namespace tally {

/// f(x) of every element, `function` as listed in core/ops/activation_functions.h; `parameter` is
/// beta of swish, alpha of elu.
Tensor activation(const Tensor& x, ops::ActivationKind function, double parameter = 1);
/// Attention of queries over keys: softmax(scale q.k) v, causal unless said otherwise.
///   q (B,T,H,K)   k (B,S,G,K)   v (B,S,G,M)   any strides   returns (B,T,H,M)
/// H is a multiple of G; causal needs S >= T, the last T keys being the tokens of q. `mask` (u8,
/// 1 = sees) and `bias`, added to the scores, broadcast to (B,H,T,S); of `documents` (B,S) i64 a token
/// sees its own alone; `sink` (H) is one more score in the softmax, without a value. A row that sees
/// nothing gives 0.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const ops::AttentionOptions& options = {}, const Tensor& mask = {},
                 const Tensor& bias = {}, const Tensor& documents = {}, const Tensor& sink = {});
/// Depthwise causal convolution: y[t] = sum_j weight[j] x[t - (K - 1) + j] (+ bias) of each channel.
///   x, y (B, T, C)   weight (C, K)   bias (C) or undefined   of `documents` (B, T) i64 a token sees
/// its own alone
Tensor causal_conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                     const Tensor& documents = {});
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
/// The outputs of the experts, weighed and added up for each token.
///   rows (M, D)   weights (..., k)   places (..., k) i64, of expert_gather   y (..., D)
Tensor expert_combine(const Tensor& rows, const Tensor& weights, const Tensor& places);
/// The rows of tokens, once for each expert that they chose, sorted by expert.
///   x (..., D)   chosen (..., k) i64, each in 0..experts-1
/// Returns rows (M, D) with M tokens k; places (..., k) i64, where each (token, choice) went; and
/// offsets (experts + 1) i64: the rows of expert e are offsets[e]..offsets[e+1]-1.
std::array<Tensor, 3> expert_gather(const Tensor& x, const Tensor& chosen, int64_t experts);
/// A linear layer for each expert, over its own rows.
///   x (M, I)   weight (E, O, I)   offsets (E + 1) i64, of expert_gather   bias (E, O) or undefined
///   y (M, O)
Tensor expert_linear(const Tensor& x, const Tensor& weight, const Tensor& offsets,
                     const Tensor& bias = {});
/// Gated delta rule over the tokens of each head: S = exp(g) S, S += beta k (v - S^T k)^T, y = scale
/// S^T q.   q, k (B, T, H, K), k normalised by the caller   v, y (B, T, H, M)   g, beta (B, T, H)
/// Returns y and the last S (B, H, K, M), which as `state` goes on where a sequence ended; both in
/// the type that q accumulates in. `scale` 0: 1/sqrt(K). Where one of `documents` (B, S) i64 begins, of
/// S >= T tokens whose last are these, S is 0.
std::array<Tensor, 2> gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& g, const Tensor& beta,
                                       const Tensor& state = {}, double scale = 0,
                                       const Tensor& documents = {});
/// Gated linear unit: act(a) b.   a (gate), b (up) (..., F), or a (..., 2F) = [gate | up] and no b
/// y (..., F)   `limit` > 0: act(min(a, limit)) (b held within +-limit + offset)
Tensor gate(const Tensor& a, const Tensor& b, ops::ActivationKind function, double parameter = 1,
            double limit = 0, double offset = 0);
/// (x - mean) / sqrt(var + eps) * weight + bias over the last axis.
///   x (..., D)   weight, bias (D) or undefined   `unit_offset`: times 1 + weight
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5, bool unit_offset = false);
/// x sigmoid(beta x), beta learned: one number () or one a channel (D).   x (..., D)
Tensor learned_swish(const Tensor& x, const Tensor& beta);
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
/// E sum_e f_e P_e of a router: f_e the share of tokens that chose expert e, without a gradient, P_e
/// the mean of softmax(logits). k where the load is even; one number in the type that logits
/// accumulate in.   logits (..., E)   chosen (..., k) i64
Tensor load_balance_loss(const Tensor& logits, const Tensor& chosen);
/// The experts of each token and their weights.   logits (..., E)   both (..., k), the second i64
/// `bias` (E) moves the choice alone. Error unless 1 <= k <= the experts that the groups leave.
std::array<Tensor, 2> moe_router(const Tensor& logits, const ops::RouterOptions& options = {},
                                 const Tensor& bias = {});
/// T5's bias of T queries, the last of S keys: bias[h,t,j] = table[bucket of the distance, h].
///   table (buckets, H)   returns (H, T, S), to be given to attention
/// One side: keys ahead share the bucket of distance 0.
Tensor relative_bias(const Tensor& table, int64_t queries, int64_t keys, bool two_sided = false,
                     int64_t max_distance = 128);
/// Transformer-XL's step from distances to keys: y[t,j] = x[t, S - T + t - j], 0 for keys ahead.
///   x (..., T, R)   y (..., T, S), S = keys   T <= S <= R
Tensor relative_shift(const Tensor& x, int64_t keys);
/// residual + scale gain x, and in training whole sequences of x left out with probability p, the
/// others divided by 1 - p. Takes a stream of `generator` if p > 0; null: evaluation, as with p = 0.
///   residual, x (..., D)   gain () or (D) or undefined: 1
Tensor residual_add(const Tensor& residual, const Tensor& x, const Tensor& gain = {},
                    double scale = 1, double p = 0, Generator* generator = nullptr);
/// x / sqrt(mean(x^2) + eps) * weight over the last axis.
///   x (..., D)   weight (D) or undefined   `unit_offset`: times 1 + weight
///   `round_before_weight`: LLaMA's rounding in bf16
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-6,
                bool unit_offset = false, bool round_before_weight = false);
/// Rotary embedding of queries or keys.   x (B,T,H,K) any strides   table (P,R) of rope_table(...)
/// Token t is at position offset + t, or at positions (B,T) where given. Error past the table.
Tensor rope(const Tensor& x, const Tensor& table, const ops::Rope::Attrs& options = {},
            const Tensor& positions = {});
/// The state-space scan of Mamba-1: h = exp(dt A) h + dt B x, y = C h (+ D x), each channel alone.
///   x, dt, y (B, T, C)   A (C, N), negative   B, C (B, T, N)   D (C) or undefined
/// Returns y and the last h (B, C, N), which as `state` goes on where a sequence ended; both in the
/// type that x accumulates in. dt is what enters, after softplus. `documents`: as gated_delta_rule.
std::array<Tensor, 2> selective_scan(const Tensor& x, const Tensor& dt, const Tensor& a,
                                     const Tensor& b, const Tensor& c, const Tensor& d = {},
                                     const Tensor& state = {}, const Tensor& documents = {});
/// exp(scale x) / (exp(sink) + sum exp(scale x)): a row may give its weight to nothing.
///   x (..., C)   `sink` broadcasts to (...), undefined: 0, softmax-off-by-one   `mask` as in softmax
Tensor sink_softmax(const Tensor& x, const Tensor& sink = {}, const Tensor& mask = {},
                    double scale = 1);
/// cap tanh(x / cap).   x (...)   Error unless the cap is finite and above 0
Tensor soft_cap(const Tensor& x, double cap);
/// p x^2 + b x above 0, n (exp(min(x, eps)) - 1 - x) + b x below: xIELU.   x (...)   p, n: ()
Tensor xielu(const Tensor& x, const Tensor& p, const Tensor& n, double b = 0.5, double eps = -1e-6);

}  // namespace tally
