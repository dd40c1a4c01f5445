#include "backends/cpu/gemm_bf16.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/gemm.h"
#include "backends/cpu/narrow.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

constexpr int64_t kChunk = int64_t{1} << 15;  // numbers that a thread takes at least

/// An operand whose "floats" are two numbers each, where they lie or in scratch.
class Paired {
 public:
  /// (rows, k), the pairs along the rows.
  void rows(const uint16_t* x, int64_t ld_x, int64_t rows, int64_t k) {
    if (k % 2 == 0 && ld_x % 2 == 0 && reinterpret_cast<uintptr_t>(x) % sizeof(float) == 0) {
      data = reinterpret_cast<const float*>(x), ld = ld_x / 2;
      return;
    }
    uint32_t* to = allocate(rows, (k + 1) / 2);
    parallel_for(rows, std::max<int64_t>(kChunk / k, 1), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const uint16_t* row = x + i * ld_x;
        for (int64_t j = 0; j < k / 2; ++j)
          to[i * ld + j] = uint32_t{row[2 * j]} | uint32_t{row[2 * j + 1]} << 16;
        if (k % 2 == 1) to[i * ld + ld - 1] = row[k - 1];
      }
    });
  }
  /// (k, columns), a pair is two rows: (k / 2, columns).
  void columns(const Bf16Kernels& kernels, const uint16_t* x, int64_t ld_x, int64_t k,
               int64_t columns) {
    uint32_t* to = allocate((k + 1) / 2, columns);
    parallel_for((k + 1) / 2, std::max<int64_t>(kChunk / columns, 1), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const uint16_t* even = x + 2 * i * ld_x;
        kernels.interleave(columns, even, 2 * i + 1 < k ? even + ld_x : nullptr, to + i * ld);
      }
    });
  }

  const float* data = nullptr;
  int64_t ld = 0;

 private:
  uint32_t* allocate(int64_t height, int64_t width) {
    own_.emplace(static_cast<size_t>(height * width) * sizeof(uint32_t));
    data = static_cast<const float*>(own_->data()), ld = width;
    return static_cast<uint32_t*>(own_->data());
  }
  std::optional<Scratch> own_;
};

}  // namespace

void gemm_bf16(const Bf16Kernels& kernels, const Bf16Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  Gemm<float> pairs{g.trans_a, g.trans_b, g.m, g.n, (g.k + 1) / 2};
  pairs.c = g.c, pairs.ldc = g.ldc, pairs.beta = g.beta, pairs.alpha = g.alpha, pairs.bias = g.bias;
  pairs.lda = g.lda, pairs.ldb = g.ldb;
  Paired a, b;
  if (g.k > 0) {
    g.trans_a ? a.columns(kernels, g.a, g.lda, g.k, g.m) : a.rows(g.a, g.lda, g.m, g.k);
    g.trans_b ? b.rows(g.b, g.ldb, g.n, g.k) : b.columns(kernels, g.b, g.ldb, g.k, g.n);
    pairs.a = a.data, pairs.lda = a.ld, pairs.b = b.data, pairs.ldb = b.ld;
  }
  gemm_packed(kernels.gemm, pairs);
}

}  // namespace tally::cpu
