// Philox: the published test vectors, and the properties that streams must have.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "core/random.h"

using namespace tally;

namespace {
// The generator's own order: counter words 0..3, key words 0 and 1.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  return Philox::block(k[0] | uint64_t{k[1]} << 32, c[2] | uint64_t{c[3]} << 32,
                       c[0] | uint64_t{c[1]} << 32);
}
}  // namespace

TEST_CASE("random: Philox4x32-10 gives the published numbers", "[random]") {
  // Known answers of the authors' library, Random123: zeros, ones, digits of pi.
  using Block = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t kAll = 0xffffffff;
  CHECK(philox({kAll, kAll, kAll, kAll}, {kAll, kAll}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: a word is a pure function of key, stream and place", "[random]") {
  static_assert(Philox::word(1, 2, 3) == Philox::block(1, 2, 0)[3]);
  CHECK(Philox::word(7, 8, 4) == Philox::block(7, 8, 1)[0]);
  std::set<uint32_t> seen;
  for (uint64_t key : {0, 1}) {
    for (uint64_t stream : {0, 1}) {
      for (uint64_t i : {0, 1, 4}) seen.insert(Philox::word(key, stream, i));
    }
  }
  CHECK(seen.size() == 12);
  CHECK(Philox::word(1, 0, 0) != Philox::word(uint64_t{1} << 32, 0, 0));
  CHECK(Philox::word(0, uint64_t{1} << 40, 0) != Philox::word(0, 0, 0));
  CHECK(Philox::word(0, 0, uint64_t{1} << 40) != Philox::word(0, 0, 0));
}

TEST_CASE("random: uniform numbers lie in [0, 1)", "[random]") {
  CHECK(to_uniform(0) == 0);
  CHECK(to_uniform(0xffffffff) < 1);
  CHECK(to_uniform(0xffffffff, 0xffffffff) < 1);
  CHECK(to_uniform(0x80000000) == 0.5F);
  CHECK(to_uniform(0x80000000, 0) == 0.5);
  double sum = 0, low = 1, high = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double u = uniform_at(5, 0, static_cast<uint64_t>(i));
    sum += u;
    low = std::min(low, u);
    high = std::max(high, u);
  }
  CHECK(low >= 0);
  CHECK(high < 1);
  CHECK(sum / kCount == Approx(0.5).margin(4 * std::sqrt(1.0 / 12 / kCount)));
}

TEST_CASE("random: normal numbers have mean 0, variance 1, and tails", "[random]") {
  constexpr int kCount = 40000;
  double sum = 0, square = 0, fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = normal_at(3, 1, static_cast<uint64_t>(i));
    REQUIRE(std::isfinite(x));
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    beyond_two += std::fabs(x) > 2 ? 1 : 0;
  }
  CHECK(sum / kCount == Approx(0).margin(4 / std::sqrt(kCount)));
  CHECK(square / kCount == Approx(1).margin(4 * std::sqrt(2.0 / kCount)));
  CHECK(fourth / kCount == Approx(3).margin(4 * std::sqrt(96.0 / kCount)));
  CHECK(beyond_two / static_cast<double>(kCount) == Approx(0.0455).margin(0.005));
}

TEST_CASE("random: a generator hands out each stream once, and continues where it was saved",
          "[random]") {
  Generator g(42);
  CHECK(g.seed() == 42);
  CHECK(g.take_stream() == 0);
  CHECK(g.take_stream() == 1);
  const uint64_t saved = g.position();
  const uint64_t next = g.take_stream();
  Generator resumed(42);
  resumed.set_position(saved);
  CHECK(resumed.take_stream() == next);
  CHECK(resumed.position() == g.position());
}
