#include "backends/cpu/gemm_bf16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/features.h"
#include "backends/register_all.h"
#include "core/dtype.h"
#include "tests/threads.h"

using namespace tally;
using namespace tally::cpu;

namespace {

/// A product of bf16 with its own memory; rows are `extra` longer than needed.
struct HalfCase {
  Bf16Gemm g;
  std::vector<uint16_t> a, b;
  std::vector<float> c, bias;
  HalfCase(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float beta, int64_t extra)
      : g{ta, tb, m, n, k} {
    g.lda = (ta ? m : k) + extra, g.ldb = (tb ? k : n) + extra, g.ldc = n + extra;
    fill(a, (ta ? k : m) * g.lda, 7);
    fill(b, (tb ? n : k) * g.ldb, 11);
    c.assign(static_cast<size_t>(m * g.ldc), beta == 0 ? NAN : 0.5f);
    bias.assign(static_cast<size_t>(n), 0.25f);
    g.a = a.data(), g.b = b.data(), g.c = c.data(), g.beta = beta, g.bias = bias.data();
  }
  static void fill(std::vector<uint16_t>& v, int64_t n, uint32_t state) {
    for (int64_t i = 0; i < n; ++i) {
      state = state * 1664525u + 1013904223u;
      v.push_back(bf16(static_cast<float>(state >> 8) / 8388608.0f - 1.0f).bits);
    }
  }
  static double value(uint16_t bits) {
    bf16 x;
    x.bits = bits;
    return static_cast<double>(static_cast<float>(x));
  }
  /// The largest error over its bound, k + 3 roundings of f32; infinity if C's slack changed.
  double worst(const std::vector<float>& before) const {
    double result = 0;
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.ldc; ++j) {
        const auto at = static_cast<size_t>(i * g.ldc + j);
        if (j >= g.n) {
          if (std::memcmp(&c[at], &before[at], sizeof(float)) != 0) return INFINITY;
          continue;
        }
        double sum = 0.25 + (g.beta == 0 ? 0 : static_cast<double>(before[at])), size = sum;
        for (int64_t p = 0; p < g.k; ++p) {
          const double term =
              value(a[static_cast<size_t>(g.trans_a ? p * g.lda + i : i * g.lda + p)]) *
              value(b[static_cast<size_t>(g.trans_b ? j * g.ldb + p : p * g.ldb + j)]);
          sum += term, size += std::abs(term);
        }
        const double bound = static_cast<double>(g.k + 3) * 0x1p-24 * size;
        const double error = std::abs(static_cast<double>(c[at]) - sum);
        if (std::isnan(error)) return INFINITY;
        result = std::max(result, error / bound);
      }
    return result;
  }
};

/// Whether this machine does; its scratch comes from the backend.
bool multiplies_pairs(const Bf16Kernels* kernels) {
  register_all();
  CHECK((kernels != nullptr) == (selected_isa() == Isa::avx512 && has_bf16_products()));
  return kernels != nullptr;
}

}  // namespace

TEST_CASE("bf16 products by pairs are right at every edge, in every transposition, over NaN",
          "[F16]") {
  const Bf16Kernels* kernels = bf16_kernels();
  if (!multiplies_pairs(kernels)) return;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const int64_t m : {1, 2, 13, 15, 57, 130})
        for (const int64_t n : {1, 15, 33, 70})
          for (const int64_t k : {0, 1, 2, 3, 31, 64, 801})
            for (const int64_t extra : {0, 1, 2}) {
              const float beta = (m + n + k) % 2 == 0 ? 0.0f : 1.0f;
              INFO("m " << m << " n " << n << " k " << k << " extra " << extra << ta << tb);
              HalfCase x(ta, tb, m, n, k, beta, extra);
              const auto before = x.c;
              gemm_bf16(*kernels, x.g);
              CHECK(x.worst(before) <= 1);
            }
}

TEST_CASE("bf16 products by pairs: the same bits for any number of threads and of rows", "[F48]") {
  const Bf16Kernels* kernels = bf16_kernels();
  if (!multiplies_pairs(kernels)) return;
  HalfCase x(false, false, 331, 300, 1801, 0, 3);
  gemm_bf16(*kernels, x.g);
  const auto all = x.c;
  for (const int threads : {1, 2, 3, 7}) {
    const test::Threads scope(threads);
    std::fill(x.c.begin(), x.c.end(), NAN);
    gemm_bf16(*kernels, x.g);
    for (int64_t i = 0; i < x.g.m; ++i)
      CHECK(std::memcmp(&x.c[static_cast<size_t>(i * x.g.ldc)],
                        &all[static_cast<size_t>(i * x.g.ldc)], 300 * sizeof(float)) == 0);
  }
  Bf16Gemm few = x.g;
  std::vector<float> c(static_cast<size_t>(9 * x.g.ldc));
  few.m = 9, few.a += 100 * few.lda, few.c = c.data();
  gemm_bf16(*kernels, few);
  for (int64_t i = 0; i < 9; ++i)
    CHECK(std::memcmp(&c[static_cast<size_t>(i * x.g.ldc)],
                      &all[static_cast<size_t>((100 + i) * x.g.ldc)], 300 * sizeof(float)) == 0);
}
