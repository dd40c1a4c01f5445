#include "optim/schedule.h"

#include <cmath>
#include <numbers>

namespace tally::optim {

double WarmupCosine::at(int64_t t) const {
  if (t < warmup) return peak * static_cast<double>(t) / static_cast<double>(warmup);
  if (t > total || total <= warmup)
    return t == warmup && total == warmup ? peak : peak * final_fraction;
  const double done = static_cast<double>(t - warmup) / static_cast<double>(total - warmup);
  return peak *
         (final_fraction + (1 - final_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
}

}  // namespace tally::optim
