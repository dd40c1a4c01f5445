#pragma once
#include <cstdint>

namespace tally::optim {

/// Learning rate by step. Step t is the update number, 0 for the first.
///   t < warmup               peak t / warmup            (so the first update of a warm-up has rate
///   0) warmup <= t <= total     peak (f + (1 - f) (1 + cos(pi (t - warmup) / (total - warmup))) /
///   2) t > total                peak f
/// with f = final_fraction; f = 1 keeps the peak. An empty phase takes no time: with total <=
/// warmup the rate falls to peak f right after the warm-up. Loshchilov & Hutter 2017,
/// arXiv:1608.03983 (cosine); lecture claims L76, L77.
struct WarmupCosine {
  double peak = 1e-3;
  double final_fraction = 0.1;
  int64_t warmup = 0;
  int64_t total = 0;

  double at(int64_t t) const;
};

}  // namespace tally::optim
