#include "backends/reference/reference.h"

#include "core/host_backend.h"
#include "core/ops/all.h"

namespace tally {

void register_reference_backend() {
  register_backend(std::make_unique<HostBackend>("reference"), kReference.kind);
  register_reference(AllCalls{});
}

}  // namespace tally
