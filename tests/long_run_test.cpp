// Training at length: early stop, the best model, branches of a trunk, schedules by tokens.
#include <catch2/catch.hpp>

#include "data/file.h"
#include "tests/message_of.h"
#include "tests/saved_state.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

RunConfig wsd(int64_t steps, double decay_fraction) {
  RunConfig c = tiny();
  c.train.schedule = Schedule::wsd;
  c.train.decay = Decay::one_minus_sqrt;
  c.train.steps = steps;
  c.train.decay_fraction = decay_fraction;
  return c;
}

bool has_step(const RunDirectory& run, int64_t step) {
  return fs::is_directory(run.file("checkpoints/step-" + std::to_string(step)));
}

}  // namespace

TEST_CASE("early stop: counts evaluations that bring nothing, by more than min_delta",
          "[training]") {
  TrainConfig t;
  t.patience = 2, t.min_delta = 0.1;
  EarlyStop e(t);
  CHECK(e.judge(10, 3.0));
  CHECK(e.judge(20, 2.8));
  CHECK_FALSE(e.judge(30, 2.75));  // lower, but not by 0.1
  CHECK_FALSE(e.out_of_patience());
  Facts facts;
  e.save(facts);
  EarlyStop resumed(t);
  resumed.load(facts, "test");
  for (EarlyStop* one : {&e, &resumed}) {
    CHECK_FALSE(one->judge(40, 2.9));
    CHECK(one->out_of_patience());
    CHECK(one->best_step() == 20);
    CHECK(one->best_loss() == 2.8);
    CHECK(one->judge(50, 2.0));
    CHECK_FALSE(one->out_of_patience());
  }
  Facts none;
  EarlyStop(t).save(none);
  CHECK(none.empty());
  t.min_delta = 0;
  EarlyStop strict(t);
  CHECK(strict.judge(10, 3.0));
  CHECK_FALSE(strict.judge(20, 3.0));  // as low is not lower
  t.patience = 0;
  EarlyStop never(t);
  for (int i = 0; i < 100; ++i) never.judge(i, 1.0 + i);
  CHECK_FALSE(never.out_of_patience());
  facts.erase("best_loss");
  CHECK_THAT(message_of([&] { never.load(facts, "folder"); }), Contains("best_loss"));
}

TEST_CASE("checkpoints: the best one is kept beside the newest, also after a resume",
          "[training]") {
  RunConfig c = tiny();
  c.train.keep_best = true;
  c.train.keep_checkpoints = 2;
  Scratch folder;
  RunDirectory run = new_run(folder);
  const std::vector<double> evaluations = {3, 2, 2.5, 2.6, 2.7, 1};
  int64_t step = 0;
  for (const double loss : evaluations) {
    Made part(c);  // each evaluation in a process of its own
    if (step > 0) part.trainer->resume(run, {});
    step += 3;
    losses(*part.trainer, step);
    part.trainer->judge(loss);
    part.trainer->save(run, {});
    const int64_t best = loss == 3 ? 3 : step < 18 ? 6 : 18;
    CHECK(run.best() == run.file("checkpoints/step-" + std::to_string(best)));
    CHECK(has_step(run, best));
    CHECK(has_step(run, step));
    CHECK(has_step(run, step - 6) == (step - 6 == best));
  }
  CHECK_FALSE(has_step(run, 6));  // no longer the best
  Made last(c);
  last.trainer->resume(run, {});
  CHECK(last.trainer->early_stop().best_loss() == 1);
  // Turned off, it goes like the others.
  c.train.keep_best = false;
  Made without(c);
  without.trainer->resume(run, {});
  losses(*without.trainer, 19);
  without.trainer->save(run, {});
  CHECK_THAT(message_of([&] { static_cast<void>(run.best()); }),
             Contains("keeps no best checkpoint"));
}

TEST_CASE("checkpoints: keep_checkpoints of them stay", "[training]") {
  RunConfig c = tiny();
  c.train.keep_checkpoints = 3;
  Made made(c);
  Scratch folder;
  RunDirectory run = new_run(folder);
  for (int64_t step = 1; step <= 6; ++step) {
    losses(*made.trainer, step);
    made.trainer->save(run, {});
  }
  for (int64_t step = 1; step <= 6; ++step) CHECK(has_step(run, step) == (step > 3));
}

TEST_CASE("wsd: a decay that branches from a trunk is the run that was planned so",
          "[training][L77]") {
  Made trunk(wsd(1000, 0.001));
  Scratch folder, branch_folder;
  RunDirectory trunk_run = new_run(folder);
  losses(*trunk.trainer, 30);
  trunk.trainer->save(trunk_run, {});
  const std::string checkpoint = trunk_run.latest();
  losses(*trunk.trainer, 50);  // the trunk goes on
  trunk.trainer->save(trunk_run, {});
  for (const int64_t end : {40, 60}) {
    const double share = static_cast<double>(end - 30) / static_cast<double>(end);
    Made whole(wsd(end, share)), branch(wsd(end, share));
    losses(*whole.trainer, end);
    branch.trainer->branch(trunk_run, {}, checkpoint);
    CHECK(branch.trainer->steps_done() == 30);
    losses(*branch.trainer, end);
    CHECK(weights(*branch.trainer) == weights(*whole.trainer));
  }
}

TEST_CASE("schedules: counted in tokens they follow a batch that grows", "[training][L76][L82]") {
  RunConfig c = tiny(4);
  const ModelConfig& m = c.model;
  for (const Schedule schedule : {Schedule::constant, Schedule::linear, Schedule::cosine,
                                  Schedule::inverse_sqrt, Schedule::multi_step, Schedule::wsd}) {
    TrainConfig t = c.train;
    t.schedule = schedule;
    for (const int64_t warmup : {int64_t{0}, int64_t{7}}) {
      t.warmup = warmup;
      TrainConfig by_tokens = t;
      by_tokens.schedule_unit = ScheduleUnit::tokens;
      for (int64_t step = 0; step <= 120; ++step)  // no ramp: the same bits
        CHECK(schedule_of(t, m).at(step) == schedule_of(by_tokens, m).at(step));
    }
  }
  TrainConfig t = c.train;  // 1 to 4 passes in 40 of 100 steps
  t.schedule = Schedule::linear, t.warmup = 0, t.final_lr_fraction = 0;
  t.accumulation_start = 1, t.ramp_steps = 40;
  t.schedule_unit = ScheduleUnit::tokens;
  const optim::BatchRamp ramp = ramp_of(t);
  for (const int64_t step : {0, 10, 39, 40, 70, 99, 100}) {
    const double seen =
        static_cast<double>(ramp.before(step)) / static_cast<double>(ramp.before(100));
    CHECK(schedule_of(t, m).at(step) == Approx(t.lr * (1 - seen)).margin(1e-18));
  }
  t.schedule = Schedule::noam;
  CHECK_THAT(message_of([&] { t.check(m); }), Contains("schedule_unit = tokens has no meaning"));
}
