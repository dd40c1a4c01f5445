// Attention on the CPU by what its queries see: time of a forward and a backward pass over n tokens,
// and time a pair of query and key that is seen. Lecture claim L97: a window is O(n w).
//   attention_bench [largest n] [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "backends/register_all.h"
#include "core/ops/attention/attention.h"

using namespace tally;

namespace {

using Clock = std::chrono::steady_clock;
using Op = ops::Attention;

struct Case {
  const char* name;
  ops::AttentionOptions options;
};
std::vector<Case> cases(int64_t n) {
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  std::vector<Case> all(5);
  all[0].name = "causal";
  all[1].name = "window of 128", all[1].options.window = 128;
  all[2].name = "window of 512", all[2].options.window = 512;
  all[3].name = "strided, sqrt(n)", all[3].options.pattern = ops::KeyPattern::strided;
  all[4].name = "fixed, sqrt(n), 8", all[4].options.pattern = ops::KeyPattern::fixed;
  all[3].options.stride = all[4].options.stride = root;
  all[4].options.summary = 8;
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

}  // namespace

int main(int argc, char** argv) {
  register_all();
  const int64_t largest = argc > 1 ? std::atoll(argv[1]) : 4096;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  fmt::print("{:>18} {:>7} {:>12} {:>11} {:>12} {:>10}\n", "keys", "n", "pairs", "forward ms",
             "backward ms", "ps a pair");
  for (int64_t n = 1024; n <= largest; n *= 2) {
    const Tensor q = filled(n, 0.37), k = filled(n, 0.11), v = filled(n, 0.23), dy = filled(n, 0.7);
    for (const Case& c : cases(n)) {
      double forward = 1e300,
             backward = 1e300;  // the least of the rounds: others share the machine
      for (int round = 0; round < rounds; ++round) {
        Op::Saved saved;
        auto start = Clock::now();
        Op::forward(q, k, v, {}, {}, {}, {}, c.options, &saved);
        forward = std::min(forward, milliseconds(start));
        start = Clock::now();
        Op::backward(dy, std::move(saved));
        backward = std::min(backward, milliseconds(start));
      }
      const double pairs = 4 * ops::visible_keys(c.options, n, n).pairs();
      fmt::print("{:>18} {:>7} {:>12.5g} {:>11.2f} {:>12.2f} {:>10.1f}\n", c.name, n, pairs,
                 forward, backward, (forward + backward) * 1e9 / pairs);
    }
  }
  return 0;
}
