#include "backends/cpu/features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace tally::cpu {
namespace {

constexpr std::array kNames = {"baseline", "avx2", "avx512"};

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

/// Which register files the operating system saves on a switch of threads (XCR0).
uint64_t saved_state() {
  constexpr unsigned kOsXsave = 1u << 27;
  if ((cpuid(1).c & kOsXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

bool has(unsigned word, unsigned mask) { return (word & mask) == mask; }

bool has_avx2() {
  constexpr unsigned kFma = 1u << 12, kAvx = 1u << 28, kF16c = 1u << 29;
  constexpr unsigned kAvx2 = 1u << 5;
  constexpr uint64_t kYmm = 0x6;
  return has(cpuid(1).c, kFma | kAvx | kF16c) && has(cpuid(7).b, kAvx2) &&
         (saved_state() & kYmm) == kYmm;
}

bool has_avx512() {
  constexpr unsigned kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  constexpr uint64_t kZmm = 0xe6;
  return has_avx2() && has(cpuid(7).b, kF | kDq | kBw | kVl) && (saved_state() & kZmm) == kZmm;
}
bool find_bf16_products() { return has_avx512() && has(cpuid(7, 1).a, 1u << 5); }
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool find_bf16_products() { return false; }
#endif

}  // namespace

std::string_view name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

bool supported(Isa isa) {
  static const bool avx2 = has_avx2(), avx512 = has_avx512();
  return isa == Isa::baseline || (isa == Isa::avx2 ? avx2 : avx512);
}

bool has_bf16_products() {
  static const bool pairs = find_bf16_products();
  return pairs;
}

Isa parse_isa(std::string_view text) {
  constexpr std::array kBestFirst = {Isa::avx512, Isa::avx2, Isa::baseline};
  for (const Isa isa : kBestFirst) {
    if (text.empty() ? supported(isa) : name(isa) == text) {
      check(supported(isa), "TALLY_ISA: this CPU must have the instruction set; got ", text, " on ",
            cpu_name(), "; leave TALLY_ISA unset to use the best one");
      return isa;
    }
  }
  fail("TALLY_ISA: must be baseline, avx2 or avx512; got '", text,
       "'; leave it unset for the best");
}

Isa selected_isa() {
  static const Isa isa = [] {
    const char* asked = std::getenv("TALLY_ISA");
    return parse_isa(asked == nullptr ? "" : asked);
  }();
  return isa;
}

std::string cpu_name() {
#if defined(__x86_64__)
  if (cpuid(0x80000000u).a < 0x80000004u) return "unnamed CPU";
  std::array<char, 49> text{};
  for (unsigned i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002u + i);
    std::memcpy(text.data() + 16 * i, &r, 16);
  }
  const std::string_view all = text.data();
  const size_t first = all.find_first_not_of(' '), last = all.find_last_not_of(' ');
  return first == all.npos ? "unnamed CPU" : std::string(all.substr(first, last - first + 1));
#else
  return "unnamed CPU";
#endif
}

int64_t l2_cache_bytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : int64_t{1} << 20;
}

}  // namespace tally::cpu
