#include "models/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace tally {
namespace {

/// Too small to divide by: the limit, the best token.
constexpr double kNoTemperature = 1e-30;

int64_t best_token(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

void check_logits(std::span<const float> logits) {
  check(!logits.empty(), "sampling: there are no logits");
  for (size_t i = 0; i < logits.size(); ++i) {
    check(!std::isnan(logits[i]), "sampling: logit ", i,
          " is NaN; the model's weights are damaged or its training diverged");
  }
  check(logits[static_cast<size_t>(best_token(logits))] > -INFINITY,
        "sampling: every logit is -inf, so no token can be chosen");
}

// Keeps the first `count` of `order` and makes their probabilities add up to 1.
void keep(std::vector<double>& p, const std::vector<size_t>& order, size_t count) {
  for (size_t i = count; i < order.size(); ++i) p[order[i]] = 0;
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
}

}  // namespace

void SamplingOptions::check() const {
  tally::check(temperature >= 0, "sampling: temperature must be 0 or more; got ", temperature);
  tally::check(top_k >= 0, "sampling: top_k must be 0 (all tokens) or more; got ", top_k);
  tally::check(top_p >= 0 && top_p <= 1, "sampling: top_p must lie in 0..1; got ", top_p);
  tally::check(min_p >= 0 && min_p <= 1, "sampling: min_p must lie in 0..1; got ", min_p);
}

std::vector<double> sampling_probabilities(std::span<const float> logits,
                                           const SamplingOptions& options) {
  options.check();
  check_logits(logits);
  const size_t n = logits.size();
  std::vector<double> p(n, 0);
  const size_t best = static_cast<size_t>(best_token(logits));
  if (options.temperature < kNoTemperature || std::isinf(logits[best])) {
    p[best] = 1;
    return p;
  }
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    p[i] = std::exp((static_cast<double>(logits[i]) - static_cast<double>(logits[best])) /
                    options.temperature);
    if (std::isnan(p[i])) p[i] = 0;  // -inf at an infinite temperature: masked all the same
    sum += p[i];
  }
  for (double& x : p) x /= sum;

  const bool all = options.top_k == 0 && options.min_p == 0 && options.top_p >= 1;
  if (all) {  // nothing is cut off, so nothing need be put in order
    keep(p, {}, 0);
    return p;
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  size_t count = n;
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < count) {
    count = static_cast<size_t>(options.top_k);
    keep(p, order, count);
  }
  while (count > 1 && p[order[count - 1]] < options.min_p * p[order[0]]) --count;
  keep(p, order, count);
  if (options.top_p < 1) {
    double reached = p[order[0]];
    size_t kept = 1;
    while (kept < count && reached < options.top_p) reached += p[order[kept++]];
    keep(p, order, kept);
  }
  return p;
}

int64_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     double uniform) {
  if (options.temperature < kNoTemperature) {
    options.check();
    check_logits(logits);
    return best_token(logits);
  }
  const std::vector<double> p = sampling_probabilities(logits, options);
  double reached = 0;
  int64_t last = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    reached += p[i];
    last = static_cast<int64_t>(i);
    if (uniform < reached) return last;
  }
  return last;  // rounding left the sum a little under 1
}

}  // namespace tally
