// The stability kit: updates that are skipped, spikes that are counted, runs that go back.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/message_of.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TrainConfig guarded(double deviations, double spikes = 0, int64_t window = 8) {
  TrainConfig t;
  t.skip_deviations = deviations, t.spike_factor = spikes, t.guard_window = window;
  return t;
}

/// A guard whose window holds losses and norms around 1.
StepGuard filled(const TrainConfig& t) {
  StepGuard guard(t);
  for (int i = 0; i < 8; ++i) CHECK_FALSE(guard.skips(1 + 0.01 * i, 1 + 0.01 * (i % 3)));
  return guard;
}

/// The tiny run with a guard so strict that it skips some steps of any run.
RunConfig strict() {
  RunConfig c = tiny();
  c.train.skip_deviations = 1, c.train.spike_factor = 1.1, c.train.guard_window = 6;
  return c;
}

void poison(Trainer& t) {
  Tensor w = t.model().named_parameters()[1].second;
  static_cast<float*>(w.data())[3] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

TEST_CASE("running window: mean, deviation and median of its last values, never of a NaN",
          "[stability]") {
  RunningWindow w(4);
  for (const double v : {100.0, 6.0, 1.0, kNaN, 3.0, kInfinity, -kInfinity, 2.0}) w.add(v);
  CHECK(w.values() == std::vector<double>{6, 1, 3, 2});
  CHECK(w.mean() == 3);
  CHECK(w.median() == 2.5);
  CHECK(w.deviation() == Approx(std::sqrt((4 + 1 + 0 + 9) / 4.0)));
  w.set_values({9, 4, 5});
  CHECK(w.median() == 5);
}

TEST_CASE("guard: skips a loss or a norm far above the window, and nothing before it is full",
          "[stability]") {
  StepGuard early(guarded(3));
  CHECK_FALSE(early.skips(1e30, 1e30));
  CHECK(filled(guarded(3)).skips(2, 1));
  CHECK(filled(guarded(3)).skips(1, 2));
  CHECK_FALSE(filled(guarded(3)).skips(1.05, 1.0));
  CHECK_FALSE(filled(guarded(3)).skips(-5, 0));  // lower is never an outlier
  CHECK_FALSE(filled(guarded(0)).skips(1e30, 1e30));
}

TEST_CASE("guard: its limits are where the rule has them", "[stability]") {
  const auto flat = [](double level, const TrainConfig& t) {
    StepGuard guard(t);
    for (int i = 0; i < 8; ++i) guard.skips(level, level);
    return guard;
  };
  // No deviation counts as a thousandth of the mean, whatever its sign.
  CHECK_FALSE(flat(1, guarded(3)).skips(1.00299, 1));
  CHECK(flat(1, guarded(3)).skips(1.00301, 1));
  CHECK_FALSE(flat(-1, guarded(3)).skips(-0.99701, -1));
  CHECK(flat(-1, guarded(3)).skips(-0.99699, -1));
  StepGuard spiked = flat(1, guarded(0, 2));
  spiked.skips(2, 2);
  CHECK(spiked.spikes() == 0);
  spiked.skips(2.01, 1);
  CHECK(spiked.spikes() == 1);
  for (int i = 0; i < 20; ++i) spiked.skips(3, 3);  // in the end half the window is as high
  const int64_t counted = spiked.spikes();
  CHECK(counted < 10);
  CHECK_FALSE(spiked.skips(kInfinity, 3));  // not finite: no number to judge
  CHECK(spiked.spikes() == counted);
  StepGuard unwatched = flat(1, guarded(3));
  CHECK_FALSE(unwatched.skips(1, 1));
  CHECK(unwatched.spikes() == 0);
}

TEST_CASE("guard: loss and norm each have a window, and each sees every step", "[stability]") {
  StepGuard guard(guarded(3, 2));
  for (int i = 0; i < 8; ++i) guard.skips(1, 1);
  CHECK(guard.skips(5, 7));
  Facts facts;
  guard.save(facts);
  for (const char* window : {"guard_loss", "guard_norm"})
    CHECK(number_facts(facts, window, "test").back() == Approx(1.003));
  CHECK(number_facts(facts, "spike_loss", "test").back() == 5);
  CHECK(number_facts(facts, "spike_norm", "test").back() == 7);
  StepGuard used(guarded(3, 2));  // what it had goes when another's state comes
  for (int i = 0; i < 3; ++i) used.skips(4, 4);
  used.load(facts, "test");
  Facts again;
  used.save(again);
  CHECK(again == facts);
}

TEST_CASE("guard: what is not finite is skipped where a rollback is to come, and counts in a row",
          "[stability]") {
  CHECK_FALSE(filled(guarded(3)).skips(kInfinity, 1));  // the trainer stops there
  TrainConfig t = guarded(3);
  t.rollback_after = 1;
  for (const auto& [loss, norm] : {std::pair{kNaN, 1.0}, {1.0, kInfinity}, {kNaN, kNaN}}) {
    StepGuard guard = filled(t);
    CHECK(guard.skips(loss, norm));
    CHECK(guard.skips(loss, norm));
    CHECK(guard.skipped() == 2);
    CHECK(guard.in_a_row() == 2);
    Facts facts;
    guard.save(facts);
    StepGuard resumed(t);
    resumed.load(facts, "test");
    CHECK(resumed.in_a_row() == 2);
    CHECK_FALSE(resumed.skips(1, 1));
    CHECK(resumed.in_a_row() == 0);
    CHECK(resumed.skipped() == 2);
  }
}

TEST_CASE("guard: neither a NaN nor a huge value changes what it thinks of the next step",
          "[stability]") {
  for (const double bad : {kNaN, kInfinity, -kInfinity, 1e300}) {
    StepGuard guard = filled(guarded(4));
    for (int i = 0; i < 3; ++i) guard.skips(bad, bad);
    INFO(bad);
    CHECK_FALSE(guard.skips(1.03, 1.01));
    CHECK(guard.skips(30, 1.01));
    Facts facts;
    guard.save(facts);
    for (const double v : number_facts(facts, "guard_loss", "test")) CHECK(v < 3);
  }
}

TEST_CASE("guard: a level that stays higher is accepted after a while", "[stability]") {
  StepGuard guard = filled(guarded(3));
  int64_t steps = 0;
  while (guard.skips(2, 1) && steps < 100) ++steps;
  CHECK(steps > 0);
  CHECK(steps < 20);
  StepGuard flat(guarded(3));  // no deviation at all
  for (int i = 0; i < 8; ++i) flat.skips(1, 1);
  CHECK_FALSE(flat.skips(1.0001, 1));
  CHECK(flat.skips(1.1, 1));
}

TEST_CASE("guard: spikes are steps above k medians, counted and not skipped", "[stability]") {
  StepGuard guard = filled(guarded(0, 2));
  CHECK_FALSE(guard.skips(5, 5));  // both at once are one
  CHECK_FALSE(guard.skips(1, 5));
  CHECK_FALSE(guard.skips(1.5, 1.5));
  CHECK_FALSE(guard.skips(kNaN, 1));
  CHECK(guard.spikes() == 2);
  CHECK(guard.skipped() == 0);
}

TEST_CASE("guard: its state goes through text without a lost bit", "[stability]") {
  StepGuard a(guarded(2, 1.5, 5));
  const auto value = [](int i) { return 1 + 0.3 * std::sin(1.7 * i) + 1e-15 * i; };
  for (int i = 0; i < 30; ++i) a.skips(value(i), value(2 * i));
  Facts facts;
  a.save(facts);
  StepGuard b(guarded(2, 1.5, 5));
  b.load(facts, "test");
  for (int i = 30; i < 90; ++i)
    CHECK(a.skips(value(i), value(3 * i)) == b.skips(value(i), value(3 * i)));
  Facts after_a, after_b;
  a.save(after_a), b.save(after_b);
  CHECK(after_a == after_b);
  CHECK(a.skipped() > 0);
  CHECK(a.spikes() > 0);
  facts["guard_loss"] = "1 2 nan";
  CHECK_THAT(message_of([&] { b.load(facts, "folder"); }),
             Contains("folder/state.json: guard_loss must hold numbers; it says 'nan'"));
  Facts none;
  StepGuard(guarded(0)).save(none);
  CHECK(none.empty());
}

TEST_CASE("training: a skipped step takes its batch and leaves weights and moments alone",
          "[stability][training]") {
  Made made(strict());
  Trainer& t = *made.trainer;
  int64_t skipped = 0;
  for (int i = 0; i < 60; ++i) {
    const auto before = weights(t);
    const int64_t updates = t.optimizer().steps();
    const StepResult r = t.step();
    CHECK(r.step == i + 1);
    if (r.lr > 0) CHECK((weights(t) == before) == r.skipped);
    CHECK(t.optimizer().steps() == updates + !r.skipped);
    skipped += r.skipped;
  }
  CHECK(skipped > 0);
  CHECK(skipped < 40);
  CHECK(t.guard().skipped() == skipped);
  CHECK(t.guard().spikes() > 0);
  CHECK(t.steps_done() == 60);
}

TEST_CASE("training: skips and spikes are the same after a resume", "[stability][training]") {
  Made whole(strict());
  const auto want = losses(*whole.trainer, 60);
  Scratch folder;
  RunDirectory run = new_run(folder);
  std::vector<double> got;
  for (const int64_t until : {int64_t{23}, int64_t{24}, int64_t{60}}) {
    Made part(strict());
    if (!got.empty()) part.trainer->resume(run, {});
    for (const double loss : losses(*part.trainer, until)) got.push_back(loss);
    part.trainer->save(run, {});
    if (until < 60) continue;
    CHECK(weights(*part.trainer) == weights(*whole.trainer));
    CHECK(part.trainer->guard().skipped() == whole.trainer->guard().skipped());
    CHECK(part.trainer->guard().spikes() == whole.trainer->guard().spikes());
  }
  CHECK(got == want);
}

TEST_CASE("training: goes back to the last checkpoint and on with other data",
          "[stability][training]") {
  RunConfig c = tiny();
  c.train.rollback_after = 2;
  Made made(c), whole(c);
  Trainer& t = *made.trainer;
  Scratch folder;
  RunDirectory run = new_run(folder);
  losses(t, 10);
  t.save(run, {});
  const auto good = weights(t);
  losses(t, 12);
  poison(t);
  CHECK(t.step().skipped);
  CHECK_FALSE(t.wants_rollback());
  const StepResult bad = t.step();
  CHECK(bad.skipped);
  CHECK_FALSE(std::isfinite(bad.loss));
  REQUIRE(t.wants_rollback());
  t.roll_back(run);
  CHECK_FALSE(t.wants_rollback());
  CHECK(t.steps_done() == 10);
  CHECK(t.rollbacks() == 1);
  CHECK(weights(t) == good);
  losses(*whole.trainer, 10);
  CHECK(t.step().loss != whole.trainer->step().loss);  // another batch from the same weights
  losses(t, 20);
  t.save(run, {});
  Made resumed(c);
  resumed.trainer->resume(run, {});
  CHECK(resumed.trainer->rollbacks() == 1);
  CHECK(losses(*resumed.trainer, 40) == losses(t, 40));
  CHECK(weights(*resumed.trainer) == weights(t));
}

TEST_CASE("training: a checkpoint that leads nowhere is given up", "[stability][training]") {
  RunConfig c = tiny();
  c.train.rollback_after = 1;
  Made made(c);
  Scratch folder;
  RunDirectory run = new_run(folder);
  made.trainer->save(run, {});
  const auto round = [&] {
    poison(*made.trainer);
    made.trainer->step();
    made.trainer->roll_back(run);
  };
  for (int i = 0; i < 8; ++i) round();
  CHECK_THAT(message_of(round), Contains("went back to step 0 8 times"));
}
