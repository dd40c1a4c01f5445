// Steps of the fused AdamW against the speed of memory: a parameter's 16 bytes are read and 12
// written (f32: gradient, weight, two moments). The bound moves the same bytes of the same arrays and
// adds one number. With --peer it is the Tally side of compare_adamw.py: a number of parameters a
// request, one JSON line an answer.
//   adamw_step [--threads N] [--parameters N] [--rounds N] [--peer]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>

#include "backends/cpu/features.h"
#include "backends/cpu/isa.h"
#include "backends/register_all.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "optim/adamw.h"

namespace tally {
namespace {

constexpr double kBytes = 28;  // of a parameter a step

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Adds the gradient to the three arrays that a step changes.
void touch(int64_t n, const float* dw, float* w, float* m, float* v) {
  parallel_for(n, 1 << 15, [&](int64_t begin, int64_t end) {
    const float* __restrict from = dw + begin;
    float* __restrict a = w + begin, * __restrict b = m + begin, * __restrict c = v + begin;
    for (int64_t i = 0; i < end - begin; ++i) a[i] += from[i], b[i] += from[i], c[i] += from[i];
  });
}

/// A parameter with its optimizer.
class Step {
 public:
  explicit Step(int64_t n)
      : w_(full({n}, 0.5, DType::f32, kCPU)), adamw_({{"all", {{"w", w_}}, 0.1, 1}}, {}) {
    w_.requires_grad_();
    w_.set_grad(full({n}, 0.01, DType::f32, kCPU));
    adamw_.step(1e-3);  // makes the moments
  }
  double step() {
    const double start = seconds();
    adamw_.step(1e-3);
    return seconds() - start;
  }
  double bound() {
    const auto state = adamw_.state();
    const double start = seconds();
    touch(w_.numel(), w_.grad().host<float>().data(), w_.host<float>().data(),
          state.at(0).second.host<float>().data(), state.at(1).second.host<float>().data());
    return seconds() - start;
  }

 private:
  Tensor w_;
  optim::AdamW adamw_;
};

/// Seconds of a step and of the bound, the best of the steps of about 0.4 s, taken in turn.
struct Times {
  double step = 1e9, bound = 1e9;
};
Times measure(Step& s) {
  Times best;
  for (const double end = seconds() + 0.4; seconds() < end;) {
    best.step = std::min(best.step, s.step());
    best.bound = std::min(best.bound, s.bound());
  }
  return best;
}

void answer() {
  fmt::print("{{\"isa\": \"{}\"}}\n", cpu::name(cpu::selected_isa()));
  std::fflush(stdout);
  for (int64_t n = 0; std::cin >> n;) {
    Step step(n);
    const Times t = measure(step);
    fmt::print("{{\"rate\": {:.5g}, \"bound\": {:.5g}}}\n", static_cast<double>(n) / t.step,
               static_cast<double>(n) / t.bound);
    std::fflush(stdout);
  }
}

void print_rounds(int64_t n, int rounds) {
  Step step(n);
  fmt::print("{} parameters, {} threads, {}\n", n, num_threads(), cpu::name(cpu::selected_isa()));
  for (int r = 0; r < rounds; ++r) {
    const Times t = measure(step);
    const double bytes = kBytes * static_cast<double>(n) * 1e-9;
    fmt::print("{:.1f} of {:.1f} GB/s, {:.2f}\n", bytes / t.step, bytes / t.bound,
               t.bound / t.step);
  }
}

}  // namespace
}  // namespace tally

int main(int count, char** values) {
  using namespace tally;
  try {
    CLI::App app("Steps of the fused AdamW against the speed of memory");
    int threads = 2, rounds = 5;
    int64_t parameters = int64_t{1} << 25;
    bool peer = false;
    app.add_option("--threads", threads)->check(CLI::PositiveNumber);
    app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
    app.add_option("--parameters", parameters)->check(CLI::PositiveNumber);
    app.add_flag("--peer", peer);
    CLI11_PARSE(app, count, values);
    register_all();
    set_num_threads(threads);
    if (peer)
      answer();
    else
      print_rounds(parameters, rounds);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
