#include "backends/cpu/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/cpu/features.h"
#include "backends/cpu/isa.h"
#include "core/error.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

template <class T>
void check_gemm(const Gemm<T>& g) {
  const int64_t a_row = g.trans_a ? g.m : g.k, b_row = g.trans_b ? g.k : g.n;
  check(g.m >= 0 && g.n >= 0 && g.k >= 0, "gemm: sizes must not be negative; m ", g.m, ", n ", g.n,
        ", k ", g.k);
  check(g.lda >= a_row && g.ldb >= b_row && g.ldc >= g.n,
        "gemm: a leading dimension must be at least the length of a row; lda ", g.lda, " for ",
        a_row, ", ldb ", g.ldb, " for ", b_row, ", ldc ", g.ldc, " for ", g.n);
  check(g.beta == 0 || g.beta == 1, "gemm: beta must be 0 or 1; got ", static_cast<double>(g.beta));
}

/// No terms at all: C = beta C + bias.
template <class T>
void gemm_empty(const Gemm<T>& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      T& c = g.c[i * g.ldc + j];
      c = (g.beta == 0 ? T{0} : c) + (g.bias == nullptr ? T{0} : g.bias[j]);
    }
}

int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
int64_t round_up(int64_t n, int64_t unit) { return blocks_of(n, unit) * unit; }

/// How C is cut into blocks. Speed alone depends on it: the order of every sum is fixed by k.
struct GemmPlan {
  int64_t rows, columns;  // of a block
  bool keep_a, keep_b;
};

template <class T>
GemmPlan plan(const Gemm<T>& g) {
  const int64_t depth = gemm_depth(g.k), threads = num_threads();
  const int64_t arena = static_cast<int64_t>(kThreadScratchBytes / sizeof(T)) - kPackedA - 64;
  GemmPlan p{};
  p.keep_a = g.m <= kGemmGroupRows && (g.m + 16) * (g.k + 16) <= kPackedA;
  // A packed block of B takes at most half of the second-level cache.
  const int64_t fits = l2_cache_bytes() / 2 / (depth * static_cast<int64_t>(sizeof(T)));
  int64_t most = std::clamp<int64_t>(fits, kGemmColumns, 512);
  // Few rows: B is read once, so it goes through the first-level cache panel by panel.
  if (p.keep_a) most = kGemmColumns;
  p.columns = round_up(blocks_of(g.n, blocks_of(g.n, most)), kGemmColumns);
  p.keep_b = p.columns * g.k <= arena;
  p.rows = kGemmGroupRows;
  if (!p.keep_b)  // B is packed again for every block of rows: make them tall
    p.rows = std::clamp(round_up(blocks_of(g.m, threads), kGemmGroupRows), p.rows, 8 * p.rows);
  return p;
}

template <class T>
void run_block(const IsaTable& table, const Gemm<T>& g, const GemmBlock& block) {
  T* scratch = reinterpret_cast<T*>(thread_scratch().data());
  if constexpr (sizeof(T) == 4)
    table.gemm_block_f32(g, block, scratch);
  else
    table.gemm_block_f64(g, block, scratch);
}

}  // namespace

template <class T>
void gemm_own(const IsaTable& table, const Gemm<T>& g) {
  check_gemm(g);
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) return gemm_empty(g);
  const GemmPlan p = plan(g);
  const int64_t across = blocks_of(g.m, p.rows), count = across * blocks_of(g.n, p.columns);
  // What each thread's scratch holds: the block of columns of B, and whether it holds A.
  struct Held {
    int64_t column = -1;
    bool a = false;
  };
  Held held[kMaxThreads];
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    Held& mine = held[thread_index()];
    for (int64_t b = begin; b < end; ++b) {
      const int64_t i = b % across * p.rows, j = b / across * p.columns;
      run_block(table, g,
                {i, std::min(i + p.rows, g.m), j, std::min(j + p.columns, g.n), p.keep_a, p.keep_b,
                 p.keep_a && mine.a, p.keep_b && mine.column == j});
      mine = {j, true};
    }
  });
}
template void gemm_own(const IsaTable&, const Gemm<float>&);
template void gemm_own(const IsaTable&, const Gemm<double>&);

GemmProvider parse_gemm_provider(const char* text) {
  const std::string_view asked = text == nullptr ? "" : text;
  if (asked == "openblas") return GemmProvider::openblas;
  check(asked.empty() || asked == "own", "TALLY_GEMM: must be own or openblas; got '", asked,
        "'; leave it unset for the default, own");
  return GemmProvider::own;
}

GemmProvider gemm_provider() {
  static const GemmProvider provider = parse_gemm_provider(std::getenv("TALLY_GEMM"));
  return provider;
}

const char* gemm_provider_name() {
  static const std::string text = gemm_provider() == GemmProvider::own
                                      ? "own " + std::string(name(isa().isa))
                                      : std::string("openblas ") + openblas_core_name();
  return text.c_str();
}

void gemm(const Gemm<float>& g) {
  if (gemm_provider() == GemmProvider::own)
    gemm_own(isa(), g);
  else
    gemm_openblas(g);
}
void gemm(const Gemm<double>& g) {
  if (gemm_provider() == GemmProvider::own)
    gemm_own(isa(), g);
  else
    gemm_openblas(g);
}
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  gemm(Gemm<float>{trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc});
}
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  gemm(Gemm<double>{trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc});
}

}  // namespace tally::cpu
