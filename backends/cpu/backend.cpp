#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels.h"
#include "core/host_backend.h"

namespace tally {

void register_cpu_backend() {
  register_backend(std::make_unique<HostBackend>("cpu"), kCPU.kind);
  cpu::register_kernels();
}

}  // namespace tally
