// A run broken off at random steps, once, twice or three times, each part with its own number of
// threads: the same bits as in one go, with all that a checkpoint has to remember in use.
#include <catch2/catch.hpp>

#include "core/parallel.h"
#include "data/file.h"
#include "tests/saved_state.h"

using namespace tally;
using namespace tally::test;

namespace {

constexpr int64_t kSteps = 100;

/// Dropout, a batch that grows, tokens as the schedule's unit, a guard that skips, spikes, a best model.
RunConfig everything() {
  RunConfig c = tiny(3);
  TrainConfig& t = c.train;
  t.accumulation_start = 1, t.ramp_steps = 60;
  t.schedule_unit = ScheduleUnit::tokens;
  t.skip_deviations = 1.5, t.spike_factor = 1.1, t.guard_window = 8, t.rollback_after = 50;
  t.keep_best = true;
  return c;
}

struct Numbers {
  uint64_t next = 0;
  int64_t below(int64_t n) { return static_cast<int64_t>(Philox::word(2026, 0, next++)) % n; }
};

/// Steps to `until`; an evaluation every ten.
void train_on(Trainer& t, int64_t until, std::vector<double>& losses) {
  while (t.steps_done() < until) {
    losses.push_back(t.step().loss);
    if (t.steps_done() % 10 == 0) t.judge(t.evaluate(1).loss);
  }
}

struct Outcome {
  std::vector<double> losses;
  std::string model, optimizer, state;
  bool operator==(const Outcome&) const = default;
};

Outcome trained(const std::vector<int64_t>& ends, const std::function<int()>& threads) {
  const Scratch folder;
  RunDirectory run = new_run(folder);
  Outcome o;
  for (const int64_t until : ends) {
    set_num_threads(threads());
    Made part(everything(), 50);
    if (!o.losses.empty()) part.trainer->resume(run, {});
    train_on(*part.trainer, until, o.losses);
    part.trainer->save(run, {});
  }
  o.model = read_file(run.latest() + "/model.safetensors");
  o.optimizer = read_file(run.latest() + "/optimizer.safetensors");
  o.state = read_file(run.latest() + "/state.json");
  return o;
}

/// So many runs with one break, with two and with three.
void break_runs(int runs) {
  register_all();
  const int former = num_threads();
  Numbers numbers;
  const Outcome whole = trained({kSteps}, [] { return 1; });
  REQUIRE(whole.losses.size() == kSteps);
  REQUIRE(whole.state.find("skipped_steps") != std::string::npos);
  for (int breaks = 1; breaks <= 3; ++breaks) {
    for (int i = 0; i < runs; ++i) {
      std::vector<int64_t> ends{kSteps};
      for (int b = 0; b < breaks; ++b) ends.push_back(1 + numbers.below(kSteps - 1));
      std::ranges::sort(ends);
      CAPTURE(ends);
      REQUIRE(trained(ends, [&] { return static_cast<int>(1 + numbers.below(4)); }) == whole);
    }
  }
  set_num_threads(former);
}

}  // namespace

TEST_CASE("training: broken off at random steps it has the bits of the unbroken run",
          "[training][F46]") {
  break_runs(4);
}

// tests/long.sh splits
TEST_CASE("training: a hundred random breaks, two at a time and three", "[splits][!hide]") {
  break_runs(100);
}
