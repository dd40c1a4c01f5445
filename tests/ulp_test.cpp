// Elementary functions and activations, values and slopes, in units of the last place: a sample of
// all floats, and with [all] every one of the 2^32 (tests/long.sh ulp).
#include "tests/ulp.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "backends/cpu/features.h"

using namespace tally;

namespace {

constexpr uint64_t kAll = uint64_t{1} << 32, kStep = 16363;

void join(std::vector<UlpError>& all, const std::vector<UlpError>& more) {
  for (size_t k = 0; k < all.size(); ++k) {
    const int64_t values = all[k].values + more[k].values;
    if (more[k].worst > all[k].worst) all[k] = more[k];
    all[k].values = values;
  }
}

Implementation by_vector(const Elementary& e, cpu::Isa isa) {
  const cpu::IsaTable& table = cpu::isa_table(isa);
  return {cpu::name(isa).data(), true, [&](int64_t n, const float* x, float* y) {
            const FlushSubnormals flush;
            e.vector(table, n, x, y);
          }};
}

std::vector<Implementation> all_of(const Elementary& e) {
  std::vector<Implementation> list = {{"reference", false, e.reference}};
  for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (cpu::supported(isa)) list.push_back(by_vector(e, isa));
  }
  return list;
}

double bound_of(const Elementary& e, const Implementation& by) {
  return by.flushed ? e.bound : e.reference_bound;
}

/// All floats near those where a function turns, saturates, overflows or underflows, or where the
/// sweep over all floats once found a slope beyond its bound (2.422 of tanh, -5.3775 of quick GELU).
std::vector<UlpError> near_turns(const Elementary& e, const std::vector<Implementation>& by) {
  std::vector<UlpError> found(by.size());
  for (const float v :
       {0.0F,  1e-30F,  2.4e-4F, 0.1F,   0.625F, 0.7518F, 0.93F, 1.0F,   1.2785F, 2.422F,
        4.0F,  5.3775F, 6.0F,    9.0F,   12.0F,  14.2F,   16.0F, 37.5F,  64.0F,   80.0F,
        87.3F, 88.7F,   92.0F,   103.9F, 150.0F, 200.0F,  1e20F, FLT_MAX}) {
    for (const float x : {v, -v}) {
      const uint64_t bits = std::bit_cast<uint32_t>(x);
      const uint64_t from = bits >= 1000 ? bits - 1000 : 0, to = std::min(bits + 1000, kAll);
      join(found, ulp_errors(e, from, to, 1, by));
    }
  }
  return found;
}

/// Every 211th float between the first terms of a series and the limits: 2^-13 <= |x| < 256.
std::vector<UlpError> between(const Elementary& e, const std::vector<Implementation>& by) {
  constexpr uint64_t kFirst = 0x39000000, kLast = 0x43800000, kSign = 0x80000000;
  std::vector<UlpError> found = ulp_errors(e, kFirst, kLast, 211, by);
  join(found, ulp_errors(e, kSign + kFirst, kSign + kLast, 211, by));
  return found;
}

/// Every `step`-th of all floats, on every core.
std::vector<UlpError> everywhere(const Elementary& e, const std::vector<Implementation>& by,
                                 uint64_t step) {
  constexpr uint64_t kPiece = uint64_t{1} << 24, kPieces = kAll / kPiece;
  std::vector<std::vector<UlpError>> found(kPieces);
  std::atomic<uint64_t> next = 0;
  const auto started = std::chrono::steady_clock::now();
  const auto work = [&] {
    for (uint64_t i = next++; i < kPieces; i = next++) {
      found[i] = ulp_errors(e, i * kPiece, (i + 1) * kPiece, step, by);
      if (step > 1 || i % 16 != 15) continue;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
      const double done = static_cast<double>(i + 1) / static_cast<double>(kPieces);
      std::fprintf(stderr, "%s: %.0f %%, %.0f s to go\n", e.name.c_str(), 100 * done,
                   spent.count() * (1 - done) / done);
    }
  };
  std::vector<std::thread> others(std::thread::hardware_concurrency() - 1);
  for (std::thread& t : others) t = std::thread(work);
  work();
  for (std::thread& t : others) t.join();
  std::vector<UlpError> all(by.size());
  for (const auto& piece : found) join(all, piece);
  return all;
}

}  // namespace

TEST_CASE("ulp: every function is within its bound on a sample of all floats", "[op]") {
  for (const Elementary& e : elementary_functions()) {
    const std::vector<Implementation> by = all_of(e);
    std::vector<UlpError> found = ulp_errors(e, 0, kAll, kStep, by);
    join(found, near_turns(e, by));
    join(found, between(e, by));
    for (size_t k = 0; k < by.size(); ++k) {
      INFO(by[k].name << " " << e.name << ": " << found[k].worst << " at " << found[k].at);
      CHECK(found[k].worst <= bound_of(e, by[k]));
      CHECK(found[k].values > 200000);
    }
  }
}

// -c NAME: one function. A line each: the largest error of each implementation, and where. The loops,
// which are slow and take their functions from the C library, are shown every 16th.
TEST_CASE("ulp: every function is within its bound on all floats", "[all][!hide]") {
  for (const Elementary& e : elementary_functions()) {
    DYNAMIC_SECTION(e.name) {
      const std::vector<Implementation> all = all_of(e), loops = {all[0]},
                                        vectors = {all.begin() + 1, all.end()};
      std::vector<UlpError> found = everywhere(e, vectors, 1);
      found.insert(found.begin(), everywhere(e, loops, 16)[0]);
      std::string line;
      for (size_t k = 0; k < all.size(); ++k) {
        CHECK(found[k].worst <= bound_of(e, all[k]));
        CHECK(found[k].values == static_cast<int64_t>(k == 0 ? kAll / 16 : kAll));
        std::array<char, 120> text{};
        std::snprintf(text.data(), text.size(), " | %s %.3f at %.9g (%lld floats)",
                      all[k].name.c_str(), found[k].worst, static_cast<double>(found[k].at),
                      static_cast<long long>(found[k].values));
        line += text.data();
      }
      std::printf("%s%s\n", e.name.c_str(), line.c_str());
      std::fflush(stdout);
    }
  }
}
