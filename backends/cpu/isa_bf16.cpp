#include "backends/cpu/bf16_kernels.h"
#include "backends/cpu/isa.h"

namespace tally::cpu {

extern const Bf16Kernels kBf16Kernels;
constinit const Bf16Kernels kBf16Kernels = {
    {gemm_pack_a<float>, gemm_pack_b<float>, gemm_multiply<float, Pairs>, kTileRows},
    bf16_chains,
    interleave};

}  // namespace tally::cpu
