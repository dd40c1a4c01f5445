#include "backends/cpu/gemm.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/features.h"
#include "backends/cpu/isa.h"
#include "core/error.h"
#include "core/parallel.h"
#include "tests/threads.h"

using namespace tally;
using namespace tally::cpu;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A product with its own memory: rows longer than needed, C filled with what the case says.
template <class T>
struct Case {
  Gemm<T> g;
  std::vector<T> a, b, c, bias;
  Case(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T beta, int64_t extra = 3)
      : g{ta, tb, m, n, k} {
    g.lda = (ta ? m : k) + extra;
    g.ldb = (tb ? k : n) + extra;
    g.ldc = n + extra;
    fill(a, (ta ? k : m) * g.lda, 7);
    fill(b, (tb ? n : k) * g.ldb, 11);
    c.assign(static_cast<size_t>(m * g.ldc), beta == 0 ? static_cast<T>(kNan) : T(0.5));
    g.beta = beta;
  }
  static void fill(std::vector<T>& v, int64_t n, uint32_t seed) {
    v.resize(static_cast<size_t>(n));
    uint32_t state = seed;
    for (T& x : v) {
      state = state * 1664525u + 1013904223u;
      x = static_cast<T>(static_cast<double>(state >> 8) / 8388608.0 - 1.0);
    }
  }
  Gemm<T>& bound() {
    g.a = a.data(), g.b = b.data(), g.c = c.data();
    g.bias = bias.empty() ? nullptr : bias.data();
    return g;
  }
  double op_a(int64_t i, int64_t p) const {
    return a[static_cast<size_t>(g.trans_a ? p * g.lda + i : i * g.lda + p)];
  }
  double op_b(int64_t p, int64_t j) const {
    return b[static_cast<size_t>(g.trans_b ? j * g.ldb + p : p * g.ldb + j)];
  }
  /// The largest |got - exact| over its bound (k + 3) u sum|terms|; infinity if C's slack changed.
  double worst(const std::vector<T>& before) const {
    const double u = std::numeric_limits<T>::epsilon() / 2;
    double result = 0;
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.ldc; ++j) {
        const size_t at = static_cast<size_t>(i * g.ldc + j);
        if (j >= g.n) {
          if (std::memcmp(&c[at], &before[at], sizeof(T)) != 0) return INFINITY;
          continue;
        }
        double sum = g.beta == 0 ? 0.0 : static_cast<double>(before[at]), size = std::abs(sum);
        for (int64_t p = 0; p < g.k; ++p) {
          const double term = static_cast<double>(g.alpha) * op_a(i, p) * op_b(p, j);
          sum += term, size += std::abs(term);
        }
        if (!bias.empty()) {
          const double add = bias[static_cast<size_t>(j)];
          sum += add, size += std::abs(add);
        }
        const double error = std::abs(static_cast<double>(c[at]) - sum);
        const double bound = static_cast<double>(g.k + 3) * u * size + 1e-300;
        if (!(error <= bound * result)) result = error / bound;  // NaN counts as wrong
        if (std::isnan(error)) return INFINITY;
      }
    return result;
  }
};

std::vector<Isa> supported_isas() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (supported(isa)) all.push_back(isa);
  return all;
}

/// Runs `product` on every transposition of a size and returns the worst error over its bound.
template <class T, class F>
double worst_of_all(int64_t m, int64_t n, int64_t k, T beta, const F& product) {
  double worst = 0;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      Case<T> x(ta, tb, m, n, k, beta);
      const std::vector<T> before = x.c;
      product(x.bound());
      worst = std::max(worst, x.worst(before));
    }
  return worst;
}

/// Every provider on this machine, in both precisions, at one size.
void check_everywhere(int64_t m, int64_t n, int64_t k, float beta) {
  for (const Isa isa : supported_isas()) {
    INFO(name(isa) << " m " << m << " n " << n << " k " << k << " beta " << beta);
    const IsaTable& table = isa_table(isa);
    const auto own = [&](const auto& g) { gemm_own(table, g); };
    CHECK(worst_of_all<float>(m, n, k, beta, own) <= 1);
    CHECK(worst_of_all<double>(m, n, k, double{beta}, own) <= 1);
  }
  INFO("openblas m " << m << " n " << n << " k " << k << " beta " << beta);
  const auto blas = [&](const auto& g) { gemm_openblas(g); };
  CHECK(worst_of_all<float>(m, n, k, beta, blas) <= 1);
  CHECK(worst_of_all<double>(m, n, k, double{beta}, blas) <= 1);
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE("gemm: every tile remainder is right, in every transposition, over NaN and added to C",
          "[F16]") {
  for (int64_t m = 1; m <= 17; ++m)
    for (int64_t n = 1; n <= 17; ++n)
      for (int64_t k = 1; k <= 17; ++k) check_everywhere(m, n, k, 0);
  for (const int64_t m : {1, 2, 7, 15})
    for (const int64_t n : {1, 4, 16, 17})
      for (const int64_t k : {1, 4, 13}) check_everywhere(m, n, k, 1);
}

TEST_CASE("gemm: sizes around tiles, groups and depth blocks are right") {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{33, 65, 47},
                       {113, 31, 385},
                       {14, 64, 384},
                       {1, 97, 769},
                       {225, 33, 20},
                       {29, 545, 100},
                       {3, 1, 400},
                       {97, 130, 771}})
    for (const float beta : {0.0f, 1.0f}) check_everywhere(s.m, s.n, s.k, beta);
}

TEST_CASE("gemm: a few rows times a transposed matrix are right at every edge") {
  for (int64_t m = 1; m <= 9; ++m)
    for (const int64_t n : {31, 32, 33, 47, 63, 64, 65, 130})
      for (const int64_t k : {1, 3, 4, 15, 17, 66, 385}) {
        if ((m + n + k) % 3 != 0) continue;  // a third of them covers every pair
        for (const Isa isa : supported_isas()) {
          INFO(name(isa) << " m " << m << " n " << n << " k " << k);
          for (const bool ta : {false, true}) {
            Case<float> x(ta, true, m, n, k, (m + k) % 2 == 0 ? 0.0f : 1.0f);
            if (n % 2 == 1) Case<float>::fill(x.bias, n, 5);
            const auto before = x.c;
            gemm_own(isa_table(isa), x.bound());
            CHECK(x.worst(before) <= 1);
          }
        }
      }
}

TEST_CASE("gemm: sums too long to stay packed are right") {
  // 5000 x 512 floats exceed the scratch arena, so B is packed block by block.
  Case<float> x(false, false, 5, 520, 5000, 0.0f);
  x.g.m = 5;
  const auto before = x.c;
  gemm(x.bound());
  CHECK(x.worst(before) <= 1);
  Case<float> tall(true, true, 130, 40, 30011, 1.0f);
  const auto tall_before = tall.c;
  gemm(tall.bound());
  CHECK(tall.worst(tall_before) <= 1);
}

TEST_CASE("gemm: beta 0 over NaN gives B exactly for A = I, beta 1 keeps NaN", "[F16]") {
  const std::vector<float> eye = {1, 0, 0, 1}, b = {1, 2, 3, 4};
  const auto run = [&](float beta, const auto& product) {
    std::vector<float> c(4, kNan);
    product(Gemm<float>{false, false, 2, 2, 2, eye.data(), 2, b.data(), 2, beta, c.data(), 2});
    return c;
  };
  const auto blas = [](const Gemm<float>& g) { gemm_openblas(g); };
  CHECK(run(0, blas) == b);
  for (const Isa isa : supported_isas()) {
    const auto own = [&](const Gemm<float>& g) { gemm_own(isa_table(isa), g); };
    CHECK(run(0, own) == b);
    for (const float v : run(1, own)) CHECK(std::isnan(v));
  }
  for (const float v : run(1, blas)) CHECK(std::isnan(v));
}

TEST_CASE("gemm: alpha scales the product alone and the bias is added once") {
  for (const Isa isa : supported_isas())
    for (const int64_t n : {5, 32, 70})
      for (const float beta : {0.0f, 1.0f}) {
        Case<float> x(false, true, 20, n, 800, beta);
        x.g.alpha = 0.25f;
        Case<float>::fill(x.bias, n, 99);
        const auto before = x.c;
        gemm_own(isa_table(isa), x.bound());
        CHECK(x.worst(before) <= 1);
        x.c = before;
        gemm_openblas(x.bound());
        CHECK(x.worst(before) <= 1);
      }
}

TEST_CASE("gemm: an empty sum gives beta C plus bias, empty results touch nothing", "[F16][F38]") {
  std::vector<float> c = {kNan, kNan, 1, 2}, bias = {3, 4};
  Gemm<float> g{false, false, 1, 2, 0, nullptr, 0, nullptr, 2, 0.0f, c.data(), 2};
  g.bias = bias.data();
  gemm(g);
  CHECK(c == std::vector<float>{3, 4, 1, 2});
  g.beta = 1;
  gemm(g);
  CHECK(c == std::vector<float>{6, 8, 1, 2});
  g.m = 0;
  gemm(g);
  CHECK(c == std::vector<float>{6, 8, 1, 2});
}

TEST_CASE("gemm: the same bits for 1, 2, 3 and 7 threads", "[F48]") {
  for (const Isa isa : supported_isas())
    for (const bool ta : {false, true}) {
      Case<float> x(ta, !ta, 331, 700, 500, 0.0f), y(ta, ta, 9, 700, 900, 1.0f);
      const auto x0 = x.c, y0 = y.c;
      std::vector<float> x1, y1;
      for (const int threads : {1, 2, 3, 7}) {
        const test::Threads scope(threads);
        x.c = x0, y.c = y0;
        gemm_own(isa_table(isa), x.bound());
        gemm_own(isa_table(isa), y.bound());
        if (threads == 1) x1 = x.c, y1 = y.c;
        CHECK(same_bits(x.c, x1));
        CHECK(same_bits(y.c, y1));
      }
      x.c = x0;
      gemm_openblas(x.bound());
      x1 = x.c;
      for (const int threads : {2, 3}) {  // its library has no threads of its own
        const test::Threads scope(threads);
        x.c = x0;
        gemm_openblas(x.bound());
        CHECK(same_bits(x.c, x1));
      }
    }
}

TEST_CASE("gemm: a row has the same bits alone and among eight, among nine and among many") {
  constexpr int64_t n = 99;
  for (const Isa isa : supported_isas()) {
    Case<float> many(false, true, 150, n, 1000, 0.0f, 0);
    gemm_own(isa_table(isa), many.bound());
    const auto rows_from = [&](int64_t row, int64_t rows) {
      std::vector<float> out(static_cast<size_t>(n * rows));
      Gemm<float> g = many.g;
      g.m = rows, g.a += row * g.lda, g.c = out.data();
      gemm_own(isa_table(isa), g);
      return out;
    };
    for (const int64_t row : {0, 77, 141}) {
      const std::vector<float> nine = rows_from(row, 9), eight = rows_from(row, 8);
      CHECK(std::memcmp(nine.data(), many.c.data() + row * n, nine.size() * sizeof(float)) == 0);
      for (const int64_t rows : {1, 2, 3, 4, 7}) {
        const std::vector<float> few = rows_from(row, rows);
        CHECK(std::memcmp(few.data(), eight.data(), few.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("gemm: leading dimensions, beta and forced names that do not fit are refused") {
  std::vector<float> v(64);
  const auto with = [&](int64_t lda, int64_t ldb, float beta, int64_t ldc) {
    gemm(false, false, 4, 4, 4, v.data(), lda, v.data(), ldb, beta, v.data(), ldc);
  };
  CHECK_THROWS_WITH(with(3, 4, 0, 4), Catch::Contains("lda 3"));
  CHECK_THROWS_WITH(with(4, 3, 0, 4), Catch::Contains("ldb 3"));
  CHECK_THROWS_WITH(with(4, 4, 0, 3), Catch::Contains("ldc 3"));
  CHECK_THROWS_WITH(with(4, 4, 0.5f, 4), Catch::Contains("beta"));
  CHECK_THROWS_WITH(parse_gemm_provider("mkl"), Catch::Contains("own or openblas"));
  CHECK(parse_gemm_provider("openblas") == GemmProvider::openblas);
  CHECK(parse_gemm_provider(nullptr) == GemmProvider::own);
  CHECK_THROWS_WITH(parse_isa("sse9"), Catch::Contains("baseline, avx2 or avx512"));
  CHECK(parse_isa("baseline") == Isa::baseline);
  CHECK(supported(parse_isa("")));
  if (!supported(Isa::avx512)) CHECK_THROWS_AS(parse_isa("avx512"), Error);
}

TEST_CASE("gemm: the provider says its name") {
  CHECK(std::string(openblas_core_name()).size() > 2);
  const std::string text = gemm_provider_name();
  CHECK((text.starts_with("own ") || text.starts_with("openblas ")));
  CHECK(!cpu_name().empty());
}
