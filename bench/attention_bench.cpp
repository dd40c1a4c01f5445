// Attention on the CPU by what its queries see: time of a forward and a backward pass, and of one
// token behind a cache, beside the pairs of query and key that are seen. Lecture claim L97: a window
// is O(n w).
//   attention_bench [largest n] [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/register_all.h"
#include "core/ops/attention/attention.h"
#include "nn/kv_cache.h"

using namespace tally;

namespace {

using Clock = std::chrono::steady_clock;
using Op = ops::Attention;

struct Case {
  std::string name;
  ops::AttentionOptions options;
};
Case window(int64_t tokens) {
  Case c{fmt::format("window of {}", tokens), {}};
  c.options.window = tokens;
  return c;
}
std::vector<Case> kinds(int64_t n) {
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  std::vector<Case> all{{"causal", {}},
                        window(128),
                        window(512),
                        {fmt::format("strided, {}", root), {}},
                        {fmt::format("fixed, {}, 8", root), {}}};
  all[3].options.pattern = ops::KeyPattern::strided;
  all[4].options.pattern = ops::KeyPattern::fixed;
  all[3].options.stride = all[4].options.stride = root;
  all[4].options.summary = 8;
  return all;
}
std::vector<Case> windows(int64_t n) {
  std::vector<Case> all{{"causal", {}}};
  for (int64_t w = 64; w <= n; w *= 2) all.push_back(window(w));
  return all;
}

Tensor filled(int64_t n, double step) {
  Tensor t = empty({1, n, 4, 64}, DType::f32, kCPU);
  float* x = static_cast<float*>(t.data());
  for (int64_t i = 0; i < t.numel(); ++i)
    x[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  return t;
}

double milliseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct Times {
  std::vector<double> forward, backward;
};
// The cases in turn, round by round; ratios are of the same round, to the first case.
void compare(int64_t n, const std::vector<Case>& cases, int rounds) {
  const Tensor q = filled(n, 0.37), k = filled(n, 0.11), v = filled(n, 0.23), dy = filled(n, 0.7);
  std::vector<Times> times(cases.size());
  for (int round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      Op::Saved saved;
      auto start = Clock::now();
      Op::forward(q, k, v, {}, {}, {}, {}, cases[i].options, &saved);
      const double forward = milliseconds(start);
      start = Clock::now();
      Op::backward(dy, std::move(saved));
      if (round == 0) continue;  // the first touch of memory
      times[i].forward.push_back(forward);
      times[i].backward.push_back(milliseconds(start));
    }
  }
  const double all = 4 * ops::visible_keys(cases[0].options, n, n).pairs();
  for (size_t i = 0; i < cases.size(); ++i) {
    const double pairs = 4 * ops::visible_keys(cases[i].options, n, n).pairs();
    std::vector<double> forward, backward;
    for (size_t r = 0; r < times[i].forward.size(); ++r) {
      forward.push_back(times[0].forward[r] / times[i].forward[r]);
      backward.push_back(times[0].backward[r] / times[i].backward[r]);
    }
    fmt::print("| {} | {} | {:.4g} | {:.1f}x | {:.2f} | {:.1f}x | {:.2f} | {:.1f}x |\n", n,
               cases[i].name, pairs, all / pairs, median(times[i].forward), median(forward),
               median(times[i].backward), median(backward));
  }
}

// One token behind a cache that has gone round, against one that keeps all n tokens.
void decode(int64_t n, int64_t w, int rounds) {
  const Tensor q = filled(1, 0.37), k = filled(n, 0.11), v = filled(n, 0.23);
  nn::KVCache::Layer full({1, n + 2000, 4, 64}, DType::f32, kCPU),
      ring({1, n + 2000, 4, 64}, DType::f32, kCPU, w);
  full.append(k, v);
  ring.append(k, v);
  const Tensor one_k = filled(1, 0.5), one_v = filled(1, 0.6);
  const auto step = [&](nn::KVCache::Layer& cache) {
    const auto start = Clock::now();
    const auto seen = cache.append(one_k, one_v);
    Op::forward(q, seen.keys, seen.values, {}, {}, {}, {}, {}, nullptr);
    return milliseconds(start);
  };
  std::vector<double> all, some, ratios;
  for (int i = 0; i < 50 * rounds && i < 2000; ++i) {
    all.push_back(step(full));
    some.push_back(step(ring));
    ratios.push_back(all.back() / some.back());
  }
  fmt::print("| {} | {} | {:.1f}x | {:.1f} | {:.1f} | {:.1f}x |\n", n, w,
             static_cast<double>(n + 1) / static_cast<double>(w), 1e3 * median(all),
             1e3 * median(some), median(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  const int64_t largest = argc > 1 ? std::atoll(argv[1]) : 4096;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const char* header =
      "| n | keys | pairs | fewer | forward, ms | faster | backward, ms | faster |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  fmt::print("4 heads of 64\n\n{}", header);
  for (int64_t n = 1024; n <= largest; n *= 2) compare(n, kinds(n), rounds);
  fmt::print("\n{}", header);
  compare(largest, windows(largest), rounds);
  fmt::print(
      "\n| tokens before | window | fewer | all, us a token | ring, us a token | faster |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (int64_t n = 1024; n <= largest; n *= 2) decode(n, 128, rounds);
  for (int64_t w = 256; w < largest; w *= 2) decode(largest, w, rounds);
  return 0;
}
