#include "backends/cpu/kernels.h"

namespace tally::cpu {

void register_kernels() {
  register_activations();
  register_attention();
  register_elementwise();
  register_linear();
  register_losses();
  register_norms();
  register_optimizers();
  register_rope();
}

}  // namespace tally::cpu
