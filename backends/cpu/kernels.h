#pragma once

namespace tally::cpu {

/// Fills the kernel table of the cpu device: one line a kernel.
void register_kernels();

// Its parts, each beside the kernels that it registers.
void register_activations();
void register_attention();
void register_curves();
void register_delta();
void register_dropout();
void register_elementwise();
void register_experts();
void register_linear();
void register_losses();
void register_matmul();
void register_mixers();
void register_movement();
void register_norms();
void register_lapack();
void register_narrow();
void register_optimizers();
void register_directions();
void register_updates();
void register_pairs();
void register_reductions();
void register_reductions_backward();
void register_relative();
void register_residual();
void register_rope();
void register_scan();
void register_softmax();

}  // namespace tally::cpu
