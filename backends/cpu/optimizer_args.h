#pragma once

namespace tally::cpu {

/// The scalars of an AdamW step; see core/ops/adamw_update.h.
struct AdamWScalars {
  float keep, beta2, rate1, rate2, step_size, root_correction, eps, gradient_scale;
};

}  // namespace tally::cpu
