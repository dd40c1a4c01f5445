#pragma once

namespace tally {

/// The fast host backend: packed matrix products and vector kernels for the instruction set at hand
/// (`TALLY_ISA` forces one), spread over the thread pool in fixed pieces.
void register_cpu_backend();

}  // namespace tally
