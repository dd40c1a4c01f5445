#include "backends/cpu/isa.h"

#include "backends/cpu/features.h"
#include "core/error.h"

namespace tally::cpu {

extern const IsaTable kBaselineTable, kAvx2Table, kAvx512Table;  // isa_*.cpp
extern const Bf16Kernels kBf16Kernels;

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

const Bf16Kernels* bf16_kernels() {
#if defined(__x86_64__)
  static const bool there = selected_isa() == Isa::avx512 && has_bf16_products();
  if (there) return &kBf16Kernels;
#endif
  return nullptr;
}

}  // namespace tally::cpu
