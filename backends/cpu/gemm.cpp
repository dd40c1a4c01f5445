#include "backends/cpu/gemm.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

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

template <class T>
const GemmKernels<T>& kernels_of(const IsaTable& table) {
  if constexpr (sizeof(T) == 4)
    return table.gemm_f32;
  else
    return table.gemm_f64;
}

int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// n in `count` parts as equal as whole units allow: where part i begins.
struct Parts {
  int64_t n, count, unit;
  Parts(int64_t size, int64_t parts, int64_t whole)
      : n(size), count(std::clamp(parts, int64_t{1}, blocks_of(size, whole))), unit(whole) {}
  int64_t operator()(int64_t i) const { return std::min(blocks_of(n, unit) * i / count * unit, n); }
  int64_t largest() const { return std::min(blocks_of(blocks_of(n, unit), count) * unit, n); }
};

/// Loops in the order of Goto & van de Geijn 2008 (Anatomy of High-Performance Matrix
/// Multiplication) and Van Zee & van de Geijn 2015 (BLIS). C is cut into blocks; a thread packs
/// what it needs of B for its block and finds it in its own second-level cache: no thread waits
/// for another. How C is cut decides the speed alone: the order of every sum is fixed by k.
template <class T>
class PackedProduct {
 public:
  PackedProduct(const GemmKernels<T>& kernels, const Gemm<T>& g)
      : g_(g), kernels_(kernels), depth_(gemm_depth(g.k)) {}

  void run() {
    if (g_.m <= kFlatRows)
      run_flat_rows();
    else if (g_.k == depth_)
      run_flat();
    else
      run_deep();
  }

 private:
  static constexpr int64_t kFlatRows = 56;
  /// Elements at the start of a thread's arena for packed A (panels of 6 rows take 8).
  static constexpr int64_t kArenaA = (kGemmGroupRows + 40) * kGemmDepth;
  static constexpr int64_t kArenaB =
      static_cast<int64_t>(kThreadScratchBytes / sizeof(T)) - kArenaA - 64;

  static T* arena() { return reinterpret_cast<T*>(thread_scratch().data()); }

  /// Columns of B that fill half a second-level cache, packed.
  int64_t cached_columns() const {
    const int64_t bytes = std::min(l2_cache_bytes() / 2, kArenaB * int64_t{sizeof(T)});
    const int64_t n = bytes / (depth_ * int64_t{sizeof(T)});
    return std::clamp(n / kGemmColumns * kGemmColumns, kGemmColumns, int64_t{512});
  }
  int64_t group_rows() const { return kGemmGroupRows / kernels_.tile_rows * kernels_.tile_rows; }

  /// One block down k. A thread keeps its packed columns of B from one group of rows to the next.
  void run_flat() {
    const int64_t threads = num_threads();
    const Parts columns(g_.n, blocks_of(g_.n, cached_columns()), kGemmColumns);
    const int64_t groups = blocks_of(g_.m, group_rows() * threads) * threads;
    const Parts rows(g_.m, groups, kernels_.tile_rows);
    std::array<int32_t, kMaxThreads> held;  // columns that each thread has packed
    held.fill(-1);
    parallel_for(columns.count * rows.count, 1, [&](int64_t task, int64_t) {
      const int64_t c = task / rows.count, r = task % rows.count, next = (r + 1) % rows.count;
      const int64_t j0 = columns(c), j1 = columns(c + 1);
      T *packed_a = arena(), *packed_b = packed_a + kArenaA;
      int32_t& mine = held[static_cast<size_t>(thread_index())];
      if (mine != c) kernels_.pack_b(g_, j0, j1, 0, g_.k, packed_b);
      mine = static_cast<int32_t>(c);
      const GemmBlock block{rows(r), rows(r + 1), j0, j1, 0, g_.k};
      multiply(block, {rows(next), rows(next + 1), j0, j1, 0, g_.k}, packed_a, packed_b);
    });
  }

  /// Many blocks down k: a block of B is packed, then met by all groups of a tall block of rows.
  void run_deep() {
    const auto [columns, rows] = cut();
    parallel_for(columns.count * rows.count, 1,
                 [&, &cols = columns, &rws = rows](int64_t task, int64_t) {
                   const int64_t c = task / rws.count, r = task % rws.count;
                   run_tall({rws(r), rws(r + 1), cols(c), cols(c + 1), 0, 0});
                 });
  }

  void run_tall(GemmBlock block) {
    T *packed_a = arena(), *packed_b = packed_a + kArenaA;
    const int64_t i0 = block.i0, height = block.i1 - i0;
    const Parts groups(height, blocks_of(height, group_rows()), kernels_.tile_rows);
    for (int64_t p = 0; p < g_.k; p += depth_) {
      block.p0 = p, block.depth = std::min(depth_, g_.k - p);
      kernels_.pack_b(g_, block.j0, block.j1, p, block.depth, packed_b);
      for (int64_t q = 0; q < groups.count; ++q) {
        block.i0 = i0 + groups(q), block.i1 = i0 + groups(q + 1);
        GemmBlock next = block;
        const int64_t after = (q + 1) % groups.count;
        next.i0 = i0 + groups(after), next.i1 = i0 + groups(after + 1);
        if (after == 0) next.p0 = p + depth_ < g_.k ? p + depth_ : p;
        next.depth = std::min(depth_, g_.k - next.p0);
        multiply(block, next, packed_a, packed_b);
      }
    }
  }

  void multiply(const GemmBlock& block, const GemmBlock& next, T* packed_a, const T* packed_b) {
    kernels_.pack_a(g_, block.i0, block.i1 - block.i0, block.p0, block.depth, packed_a);
    kernels_.multiply(g_, block, next, packed_a, packed_b);
  }

  /// The cut of C that ends first: every block of columns packs A again and every block of rows
  /// packs B again, at about half a cycle an element, against 1/32 of a cycle a multiply-add.
  std::pair<Parts, Parts> cut() const {
    const int64_t threads = num_threads(), least = blocks_of(g_.n, cached_columns());
    double best = 0;
    std::pair<Parts, Parts> result{Parts(g_.n, least, kGemmColumns),
                                   Parts(g_.m, 1, kernels_.tile_rows)};
    for (int64_t c = least; c <= least + threads; ++c)
      for (int64_t r = 1; r <= 2 * threads; ++r) {
        const Parts columns(g_.n, c, kGemmColumns), rows(g_.m, r, kernels_.tile_rows);
        const double n = static_cast<double>(columns.largest());
        const double m = static_cast<double>(rows.largest());
        const double turns = static_cast<double>(blocks_of(columns.count * rows.count, threads));
        const double time = turns * (m * n / 32 + (m + n) / 2);
        if (best != 0 && time >= best) continue;
        best = time;
        result = {columns, rows};
      }
    return result;
  }

  template <class F>
  void for_depths(const F& f) const {
    for (int64_t p = 0; p < g_.k; p += depth_) f(p, std::min(depth_, g_.k - p));
  }

  /// Not many rows: every element of B is used in one tile of columns only. So A is packed first, and B
  /// goes panel by panel through the first-level cache of the thread that needs it.
  void run_flat_rows() {
    const int64_t rows = blocks_of(g_.m, kernels_.tile_rows) * 16;  // no panel is wider
    if (rows * g_.k > kArenaB) return run_deep();
    T* packed_a = arena() + kArenaA;
    for_depths([&](int64_t p, int64_t depth) {
      kernels_.pack_a(g_, 0, g_.m, p, depth, packed_a + p * rows);
    });
    parallel_for(blocks_of(g_.n, kGemmColumns), 1, [&](int64_t begin, int64_t) {
      const int64_t j0 = begin * kGemmColumns, j1 = std::min(j0 + kGemmColumns, g_.n);
      T* packed_b = arena();
      for_depths([&](int64_t p, int64_t depth) {
        kernels_.pack_b(g_, j0, j1, p, depth, packed_b);
        kernels_.multiply(g_, {0, g_.m, j0, j1, p, depth}, {}, packed_a + p * rows, packed_b);
      });
    });
  }

  const Gemm<T>& g_;
  const GemmKernels<T>& kernels_;
  int64_t depth_;
};

/// Very few rows, as in decoding: nothing of B is packed, see few_rows_kernels.h.
bool is_few(const Gemm<float>& g) {
  return g.m <= kFewRows && !g.trans_a && g.trans_b && g.alpha == 1;
}

void run_few(const IsaTable& table, const Gemm<float>& g) {
  parallel_for(g.n, few_rows_piece(g.n), [&](int64_t j0, int64_t j1) {
    table.few_rows({g.m, j0, j1, g.k, g.a, g.lda, g.b, g.ldb, g.bias, g.c, g.ldc, g.beta != 0});
  });
}

}  // namespace

template <class T>
void gemm_own(const IsaTable& table, const Gemm<T>& g) {
  check_gemm(g);
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) return gemm_empty(g);
  if constexpr (sizeof(T) == sizeof(float))
    if (is_few(g)) return run_few(table, g);
  PackedProduct<T>(kernels_of<T>(table), g).run();
}
template void gemm_own(const IsaTable&, const Gemm<float>&);
template void gemm_own(const IsaTable&, const Gemm<double>&);

void gemm_packed(const GemmKernels<float>& kernels, const Gemm<float>& g) {
  check_gemm(g);
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) return gemm_empty(g);
  PackedProduct<float>(kernels, g).run();
}

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

const char* bf16_provider_name() { return "own avx512_bf16"; }

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
