#include "backends/cpu/isa_kernels.h"

namespace tally::cpu {

extern const IsaTable kAvx2Table;
constinit const IsaTable kAvx2Table = make_table(Isa::avx2);

}  // namespace tally::cpu
