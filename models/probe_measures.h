#pragma once
#include <cstddef>
#include <utility>

#include "core/ops/attention/forward.h"

namespace tally {

/// Sum of the squares of a view in host memory, in double; the same bits for any thread count.
double square_sum(const View& view);

/// Euclidean norms of (now - old) and of `old`, which holds the elements of the dense view `now` as
/// they were before.
std::pair<double, double> change_of(const View& now, const std::byte* old);

/// Into how many directions a dense matrix is spread: the participation ratio of its singular values s,
/// (sum s^2)^2 / sum s^4, as a share of the most there could be, its shorter side. 1: all are equal, as
/// in an orthogonal matrix; near 0: a few have it all. Of now - old, or of `now` where `old` is null.
/// NaN where it is zero, or the work more than kMostProducts.
double rank_share(const View& now, const std::byte* old = nullptr);
inline constexpr double kMostProducts = 1e9;  // shorter side^2 times longer side: a second or so

/// What a sample of attention's rows is like, sums over `rows` of them.
struct AttentionMeasure {
  double rows = 0;
  double entropy = 0;    // -sum_j p_j log p_j, nats
  double saturated = 0;  // rows whose largest p is above 0.99
  double max_logit = 0;  // largest |score| met, scale and cap applied
};
/// Rows that are looked at in each call: enough for means to a few percent, and cheap.
inline constexpr int64_t kAttentionRows = 256;
/// Looks at up to kAttentionRows rows (sequence, head, query), the same ones every time, spread
/// over all of them. Scores are computed anew from q and k; p = exp(score - l).
AttentionMeasure measure_attention(const ops::AttentionForward& call);

}  // namespace tally
