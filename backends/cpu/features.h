#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/cpu/isa.h"

namespace tally::cpu {

std::string_view name(Isa isa);

/// Whether the CPU has it and the operating system saves its registers.
bool supported(Isa isa);

/// Whether the CPU has AVX512_BF16: pairs of bf16 multiplied and added to f32.
bool has_bf16_products();

/// The one that kernels run with: the best supported, or what the environment variable TALLY_ISA
/// asks for (`baseline`, `avx2`, `avx512`). Throws Error for another value or one that this
/// machine cannot run. Read once.
Isa selected_isa();

/// What TALLY_ISA=`text` selects; empty selects the best. Throws as selected_isa does.
Isa parse_isa(std::string_view text);

/// The name the CPU gives itself ("AMD EPYC 9654 96-Core Processor").
std::string cpu_name();

/// Bytes of the second-level cache of one core; 1 MiB when the CPU does not say.
int64_t l2_cache_bytes();

}  // namespace tally::cpu
