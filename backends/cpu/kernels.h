#pragma once

namespace tally::cpu {

/// Fills the kernel table of the cpu device: one line a kernel.
void register_kernels();

// Its parts, each beside the kernels that it registers.
void register_activations();
void register_attention();
void register_elementwise();
void register_linear();
void register_losses();
void register_norms();
void register_optimizers();
void register_rope();

}  // namespace tally::cpu
