#include "backends/cpu/kernels.h"

#include "core/ops/all.h"

namespace tally::cpu {

void register_kernels() {}

}  // namespace tally::cpu
