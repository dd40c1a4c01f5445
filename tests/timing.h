#pragma once
// Comparing the times of two pieces of work on a machine that does other things too.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tally::test {

/// Time of `work` over time of `other`, each cut into `parts` calls work(part) of well under a time
/// slice. Rounds of both alternate; what counts of each part is its fastest call, which other
/// programs have not met. Ends when the quotient is at most `limit` or far from it, else after
/// `rounds`: more rounds only bring the fastest calls nearer to the truth.
template <class Work, class Other>
double time_quotient(size_t parts, const Work& work, const Other& other, double limit,
                     int rounds = 240) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> mine(parts, INFINITY), others(parts, INFINITY);
  const auto round = [&](const auto& act, std::vector<double>& fastest) {
    double total = 0;
    for (size_t i = 0; i < parts; ++i) {
      const auto start = Clock::now();
      act(i);
      const std::chrono::duration<double> took = Clock::now() - start;
      total += fastest[i] = std::min(fastest[i], took.count());
    }
    return total;
  };
  double quotient = INFINITY;
  for (int r = 0; r < rounds && (r < 3 || (quotient > limit && quotient < 5 * limit)); ++r) {
    const double a = round(work, mine);
    quotient = a / round(other, others);
  }
  return quotient;
}

}  // namespace tally::test
