#pragma once
#include "core/ops/linear.h"

namespace tally::cpu {

/// The linear layer of bf16: by products of pairs where the CPU has them, else through f32.
void linear_half(const ops::Linear::Forward& c);
void linear_half(const ops::Linear::Backward& c);

}  // namespace tally::cpu
