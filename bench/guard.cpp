// What the guard of docs/stability.md costs: skipping, spike counting and rollback switched on against
// the same training without, in paired rounds, and a second one without as the control that shows the
// noise. The check that loss and norm are finite is in all three: it is two comparisons a step.
//   build/guard [PRESET] [ROUNDS] [STEPS A ROUND]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "backends/register_all.h"
#include "core/random.h"
#include "data/text_data.h"
#include "models/trainer.h"
#include "models/zoo.h"

using namespace tally;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

RunConfig guarded_config(RunConfig c) {
  c.train.skip_deviations = 1e6, c.train.spike_factor = 1e6, c.train.rollback_after = 5;
  return c;
}

std::unique_ptr<Trainer> trainer(RunConfig c) {
  c.resolve_and_check("guard");
  std::vector<TokenId> ids(1 << 18);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = Philox::word(1, 0, i) % static_cast<uint32_t>(c.model.vocab);
  const TokenFile tokens = TokenFile::from_ids(ids, {"", c.model.vocab, {}, 0, 0});
  const std::vector<uint32_t> bytes(static_cast<size_t>(c.model.vocab), 1);
  return std::make_unique<Trainer>(c, TokenSplits{tokens, {}}, bytes, DType::f32, kCPU);
}

double seconds_of(Trainer& t, int64_t steps) {
  const double start = now();
  for (int64_t i = 0; i < steps; ++i) t.step();
  return now() - start;
}

// Two-sided sign test: how likely rounds split as unevenly when neither side is slower.
double sign_test(int64_t slower, int64_t rounds) {
  const int64_t k = std::max(slower, rounds - slower);
  double p = 0;
  for (int64_t i = k; i <= rounds; ++i)
    p += std::exp(std::lgamma(rounds + 1.0) - std::lgamma(i + 1.0) - std::lgamma(rounds - i + 1.0) -
                  static_cast<double>(rounds) * std::log(2.0));
  return std::min(1.0, 2 * p);
}

void show(const char* what, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const auto n = static_cast<int64_t>(ratios.size());
  const auto at = [&](double share) { return ratios[static_cast<size_t>(share * (n - 1.0))]; };
  const int64_t slower = std::ranges::count_if(ratios, [](double r) { return r > 1; });
  fmt::print(
      "{:8} median {:.4f} (quartiles {:.4f} to {:.4f}), slower in {} of {} rounds, p = {:.2g}\n",
      what, at(0.5), at(0.25), at(0.75), slower, n, sign_test(slower, n));
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  const RunConfig c = find_preset(argc > 1 ? argv[1] : "llama-smoke").config;
  const int64_t rounds = argc > 2 ? std::stoll(argv[2]) : 101;
  const int64_t steps = argc > 3 ? std::stoll(argv[3]) : 20;
  const std::array sides = {trainer(c), trainer(guarded_config(c)), trainer(c)};
  for (const auto& side : sides) seconds_of(*side, c.train.guard_window + 5);  // windows are full
  std::vector<double> guarded, control;
  for (int64_t round = 0; round < rounds; ++round) {
    std::array<double, 3> t{};
    for (size_t i = 0; i < 3; ++i) {  // each side comes first, second and last equally often
      const size_t side = (i + static_cast<size_t>(round)) % 3;
      t[side] = seconds_of(*sides[side], steps);
    }
    guarded.push_back(t[1] / t[0]);
    control.push_back(t[2] / t[0]);
  }
  show("guarded", guarded);
  show("control", control);
  StepGuard guard(guarded_config(c).train);
  constexpr int kCalls = 100000;
  const double start = now();
  for (int i = 0; i < kCalls; ++i) guard.skips(2 + 1e-3 * (i % 97), 1 + 1e-3 * (i % 89));
  const double alone = (now() - start) / kCalls,
               step = seconds_of(*sides[0], steps) / double(steps);
  fmt::print("alone: {:.2f} us of a step of {:.0f} us, {:.3f} %\n", 1e6 * alone, 1e6 * step,
             100 * alone / step);
  return 0;
}
