#include "backends/cpu/isa_kernels.h"

namespace tally::cpu {

extern const IsaTable kAvx512Table;
constinit const IsaTable kAvx512Table = make_table(Isa::avx512);

}  // namespace tally::cpu
