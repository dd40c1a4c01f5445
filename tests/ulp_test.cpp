// Elementary functions and activations, values and slopes, in units of the last place: a sample of
// all floats, and with [all] every one of the 2^32 (tests/long.sh ulp).
#include "tests/ulp.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <thread>

#include "backends/cpu/features.h"

using namespace tally;

namespace {

constexpr uint64_t kAll = uint64_t{1} << 32, kStep = 16363;

UlpError larger_of(const UlpError& a, const UlpError& b) {
  UlpError both = b.worst > a.worst ? b : a;
  both.values = a.values + b.values;
  return both;
}

UlpError by_vector(const Elementary& e, const cpu::IsaTable& table, uint64_t first, uint64_t last,
                   uint64_t step) {
  const FlushSubnormals flush;
  const auto f = [&](int64_t n, const float* x, float* y) { e.vector(table, n, x, y); };
  return ulp_error(e, first, last, step, true, f);
}

UlpError by_reference(const Elementary& e, uint64_t first, uint64_t last, uint64_t step) {
  return ulp_error(e, first, last, step, false, e.reference);
}

/// All floats near those where a function turns, saturates, overflows or underflows.
template <class Measure>
UlpError near_turns(Measure measure) {
  UlpError found;
  for (const float v : {0.0F,  1e-30F, 2.4e-4F, 0.1F,   0.625F, 0.7518F, 0.93F, 1.0F,   1.2785F,
                        4.0F,  6.0F,   9.0F,    12.0F,  14.2F,  16.0F,   37.5F, 64.0F,  80.0F,
                        87.3F, 88.7F,  92.0F,   103.9F, 150.0F, 200.0F,  1e20F, FLT_MAX}) {
    for (const float x : {v, -v}) {
      const uint64_t bits = std::bit_cast<uint32_t>(x);
      const uint64_t from = bits >= 1000 ? bits - 1000 : 0, to = std::min(bits + 1000, kAll);
      found = larger_of(found, measure(from, to, uint64_t{1}));
    }
  }
  return found;
}

template <class Measure>
UlpError on_two_threads(Measure measure) {
  UlpError lower;
  std::thread other([&] { lower = measure(uint64_t{0}, kAll / 2, uint64_t{1}); });
  const UlpError upper = measure(kAll / 2, kAll, uint64_t{1});
  other.join();
  return larger_of(lower, upper);
}

void show(const Elementary& e, const char* what, const UlpError& found) {
  std::printf("%-16s %-9s %8.3f at %.9g\n", e.name.c_str(), what, found.worst,
              static_cast<double>(found.at));
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("ulp: every function is within its bound on a sample of all floats", "[op]") {
  for (const Elementary& e : elementary_functions()) {
    if (e.reference_bound > 0) {
      const auto reference = [&](uint64_t a, uint64_t b, uint64_t s) {
        return by_reference(e, a, b, s);
      };
      const UlpError r = larger_of(reference(0, kAll, kStep), near_turns(reference));
      INFO("reference " << e.name << ": " << r.worst << " at " << r.at);
      CHECK(r.worst <= e.reference_bound);
      CHECK(r.values > 200000);
    }
    for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
      if (!cpu::supported(isa)) continue;
      const cpu::IsaTable& table = cpu::isa_table(isa);
      const auto vector = [&](uint64_t a, uint64_t b, uint64_t s) {
        return by_vector(e, table, a, b, s);
      };
      const UlpError v = larger_of(vector(0, kAll, kStep), near_turns(vector));
      INFO(cpu::name(isa) << " " << e.name << ": " << v.worst << " at " << v.at);
      CHECK(v.worst <= e.bound);
    }
  }
}

TEST_CASE("ulp: vector code over all floats", "[all][!hide]") {
  for (const Elementary& e : elementary_functions()) {
    const UlpError v = on_two_threads(
        [&](uint64_t a, uint64_t b, uint64_t s) { return by_vector(e, cpu::isa(), a, b, s); });
    show(e, cpu::name(cpu::isa().isa).data(), v);
    CHECK(v.worst <= e.bound);
  }
}

TEST_CASE("ulp: the loops in f32 over all floats", "[all][!hide]") {
  for (const Elementary& e : elementary_functions()) {
    const UlpError r = on_two_threads(
        [&](uint64_t a, uint64_t b, uint64_t s) { return by_reference(e, a, b, s); });
    show(e, "reference", r);
    CHECK((e.reference_bound == 0 || r.worst <= e.reference_bound));
  }
}
