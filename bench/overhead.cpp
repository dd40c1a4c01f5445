// What an op costs beside its arithmetic: chains of ops on 16 elements, in nanoseconds an op.
//   overhead [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "autograd/functional.h"
#include "autograd/tape.h"
#include "backends/register_all.h"

using namespace tally;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kOps = 100;

double nanoseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count() / kOps;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct Times {
  std::vector<double> plain, forward, backward;
};

template <class Op>
void measure(const char* name, int rounds, Op op) {
  Tensor x = full({16}, 0.5, DType::f32, kCPU), w = full({16}, 1, DType::f32, kCPU);
  const Tensor seed = full({16}, 1, DType::f32, kCPU);
  w.requires_grad_();
  Times times;
  Tape tape;
  for (int round = 0; round < rounds; ++round) {
    const auto chain = [&](const Tensor& weight) {
      Tensor h = x;
      for (int i = 0; i < kOps; ++i) h = op(h, weight);
      return h;
    };
    const auto t0 = Clock::now();
    chain(w.detach());
    const auto t1 = Clock::now();
    const Tensor y = chain(w);
    const auto t2 = Clock::now();
    tape.backward(y, seed);
    const auto t3 = Clock::now();
    times.plain.push_back(nanoseconds(t0, t1));
    times.forward.push_back(nanoseconds(t1, t2));
    times.backward.push_back(nanoseconds(t2, t3));
  }
  std::printf("%-24s %8.0f %8.0f %8.0f\n", name, median(times.plain), median(times.forward),
              median(times.backward));
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000;
  std::printf("16 elements of f32, ns an op: %8s %8s %8s\n", "alone", "recorded", "backward");
  measure("add(x, w)", rounds, [](const Tensor& x, const Tensor& w) { return add(x, w); });
  measure("mul(x, w)", rounds, [](const Tensor& x, const Tensor& w) { return mul(x, w); });
  measure("rms_norm(x, w)", rounds,
          [](const Tensor& x, const Tensor& w) { return rms_norm(x, w); });
}
