#include "backends/register_all.h"

#include "backends/cpu/cpu.h"
#include "backends/meta/meta.h"
#include "backends/reference/reference.h"
#include "core/backend.h"

namespace tally {

void register_all() {
  if (has_backend(kReference)) return;
  register_reference_backend();
  register_meta_backend();
  register_cpu_backend();
}

}  // namespace tally
