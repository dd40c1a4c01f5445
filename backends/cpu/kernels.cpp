#include "backends/cpu/kernels.h"

namespace tally::cpu {

void register_kernels() {
  register_activations();
  register_attention();
  register_curves();
  register_delta();
  register_dropout();
  register_elementwise();
  register_experts();
  register_linear();
  register_losses();
  register_matmul();
  register_mixers();
  register_movement();
  register_norms();
  register_lapack();
  register_optimizers();
  register_directions();
  register_updates();
  register_pairs();
  register_reductions();
  register_reductions_backward();
  register_relative();
  register_residual();
  register_rope();
  register_scan();
  register_softmax();
  register_narrow();  // of what the others gave an f32 kernel
}

}  // namespace tally::cpu
