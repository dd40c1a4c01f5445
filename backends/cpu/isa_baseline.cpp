#include "backends/cpu/isa_kernels.h"

namespace tally::cpu {

extern const IsaTable kBaselineTable;
constinit const IsaTable kBaselineTable = make_table(Isa::baseline);

}  // namespace tally::cpu
