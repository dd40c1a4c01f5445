#include "backends/cpu/kernels.h"

namespace tally::cpu {

void register_kernels() {
  register_activations();
  register_elementwise();
  register_linear();
  register_norms();
  register_optimizers();
}

}  // namespace tally::cpu
