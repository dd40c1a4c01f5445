#include "backends/cpu/isa.h"

#include "backends/cpu/features.h"
#include "core/error.h"

namespace tally::cpu {

extern const IsaTable kBaselineTable, kAvx2Table, kAvx512Table;  // isa_*.cpp

const IsaTable& isa_table(Isa isa) {
  check(supported(isa), "isa_table: this CPU must have the instruction set; got ", name(isa),
        " on ", cpu_name());
#if defined(__x86_64__)
  if (isa != Isa::baseline) return isa == Isa::avx2 ? kAvx2Table : kAvx512Table;
#endif
  return kBaselineTable;
}

const IsaTable& isa() {
  static const IsaTable& selected = isa_table(selected_isa());
  return selected;
}

}  // namespace tally::cpu
