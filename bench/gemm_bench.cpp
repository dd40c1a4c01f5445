// Products of matrices at the shapes of language models. Without arguments: a
// table of both providers, in interleaved rounds, as shares of the measured
// peak. With --peer it is the Tally side of compare_gemm.py: one line "M N K
// OP" a request, one JSON line an answer. usage: gemm_bench [--threads N]
// [--peer]      OP: NT, NN or TN, as A and B are stored
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/ceilings.h"
#include "backends/cpu/features.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "core/error.h"
#include "core/parallel.h"

namespace tally::cpu {
namespace {

struct Shape {
  int64_t m, n, k;
  std::string op;
};

/// tiny-gpt forward, dX and dW at 2,048 tokens; gpt2 at 1,024; decoding.
const Shape kShapes[] = {
    {2048, 384, 384, "NT"},   {2048, 1152, 384, "NT"},  {2048, 1536, 384, "NT"},
    {2048, 384, 1536, "NT"},  {2048, 1024, 384, "NT"},  {2048, 384, 1024, "NT"},
    {2048, 256, 384, "NT"},   {2048, 384, 1152, "NN"},  {2048, 1536, 384, "NN"},
    {2048, 384, 1536, "NN"},  {384, 384, 2048, "TN"},   {1152, 384, 2048, "TN"},
    {1536, 384, 2048, "TN"},  {384, 1536, 2048, "TN"},  {1024, 2304, 768, "NT"},
    {1024, 3072, 768, "NT"},  {1024, 768, 3072, "NT"},  {1024, 768, 3072, "NN"},
    {768, 768, 1024, "TN"},   {3072, 768, 1024, "TN"},  {1024, 50257, 768, "NT"},
    {1024, 768, 50257, "NN"}, {50257, 768, 1024, "TN"}, {1, 384, 384, "NT"},
    {1, 3072, 768, "NT"},     {1, 50257, 768, "NT"},    {8, 3072, 768, "NT"},
    {8, 50257, 768, "NT"},    {64, 64, 64, "NN"},
};

/// One product with its own memory.
class Product {
 public:
  explicit Product(const Shape& s)
      : a_(s.m * s.k, 0.25f), b_(s.n * s.k, 0.5f), c_(s.m * s.n), flops_(2.0 * s.m * s.n * s.k) {
    const bool ta = s.op[0] == 'T', tb = s.op[1] == 'T';
    g_ = {ta,   tb,        s.m, s.n, s.k, a_.data(), ta ? s.m : s.k, b_.data(), tb ? s.k : s.n,
          0.0f, c_.data(), s.n};
  }
  /// Floating point operations a second, best of about `seconds`.
  template <class F>
  double rate(double seconds, const F& product) {
    using Clock = std::chrono::steady_clock;
    const auto now = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()); };
    double best = 0;
    const double end = now().count() + seconds;
    do {
      const double start = now().count();
      product(g_);
      best = std::max(best, flops_ / (now().count() - start));
    } while (now().count() < end);
    return best;
  }

 private:
  std::vector<float> a_, b_, c_;
  double flops_;
  Gemm<float> g_;
};

void own(const Gemm<float>& g) { gemm_own(isa(), g); }

void print_table() {
  const double peak = measure_fma_peak();
  const Bandwidth memory = measure_bandwidth();
  fmt::print(
      "{}, {}, {} threads: {:.0f} GFLOP/s, reads {:.1f} GB/s; OpenBLAS "
      "core {}\n",
      cpu_name(), name(selected_isa()), num_threads(), peak / 1e9, memory.read / 1e9,
      openblas_core_name());
  fmt::print(
      "{:>6} {:>6} {:>6} op  own GFLOP/s  of peak  weights GB/s  "
      "OpenBLAS, one thread\n",
      "m", "n", "k");
  for (const Shape& s : kShapes) {
    Product product(s);
    double ours = 0, blas = 0;
    for (int round = 0; round < 3; ++round) {
      ours = std::max(ours, product.rate(0.05, own));
      blas = std::max(blas, product.rate(0.02, gemm_openblas<float>));
    }
    fmt::print("{:>6} {:>6} {:>6} {} {:>12.1f} {:>7.1f}% {:>13.1f} {:>21.1f}\n", s.m, s.n, s.k,
               s.op, ours / 1e9, 100 * ours / peak, 2 * ours / static_cast<double>(s.m) / 1e9,
               blas / 1e9);
    std::fflush(stdout);
  }
}

void answer() {
  fmt::print("{{\"peak\": {:.4g}, \"isa\": \"{}\"}}\n", measure_fma_peak(), name(selected_isa()));
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    Shape s{};
    check(static_cast<bool>(in >> s.m >> s.n >> s.k >> s.op) && s.op.size() == 2,
          "gemm_bench: a request is `M N K OP`; got ", line);
    fmt::print("{{\"rate\": {:.5g}}}\n", Product(s).rate(0.08, own));
    std::fflush(stdout);
  }
}

int run(const std::vector<std::string_view>& arguments) {
  bool peer = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--peer") {
      peer = true;
    } else if (arguments[i] == "--threads" && i + 1 < arguments.size()) {
      set_num_threads(std::atoi(arguments[++i].data()));
    } else {
      fail("gemm_bench: takes --threads N and --peer; got ", arguments[i]);
    }
  }
  if (peer)
    answer();
  else
    print_table();
  return 0;
}

}  // namespace
}  // namespace tally::cpu

int main(int count, char** values) {
  try {
    return tally::cpu::run({values + 1, values + count});
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
