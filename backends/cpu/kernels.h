#pragma once

namespace tally::cpu {

/// Fills the kernel table of the cpu device: one line a kernel.
void register_kernels();

}  // namespace tally::cpu
