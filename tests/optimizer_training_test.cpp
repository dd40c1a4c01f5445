// Every optimizer trains the smallest model: the loss falls, replayed steps have the bits of eager
// ones, and a run that goes on from its checkpoint is the unbroken one.
#include <catch2/catch.hpp>

#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;
using Catch::Matchers::Contains;

namespace {

RunConfig with_optimizer(size_t kind, int64_t steps = 100) {
  RunConfig c = tiny(1);
  c.train.optimizer = static_cast<OptimizerKind>(kind);
  c.train.steps = steps;
  c.train.precondition_every = 4;
  c.train.lr = 1e-2;
  using K = OptimizerKind;
  if (c.train.optimizer == K::sgd) c.train.lr = 0.1, c.train.momentum = 0.9;
  if (c.train.optimizer == K::lion || c.train.optimizer == K::rmsprop) c.train.lr = 2e-3;
  if (c.train.optimizer == K::adagrad || c.train.optimizer == K::adafactor_t5) c.train.lr = 0.05;
  if (c.train.optimizer == K::adafactor) c.train.lr = 0.05;
  if (c.train.optimizer == K::shampoo) c.train.lr = 0.1, c.train.rest_lr_scale = 0.1;
  c.resolve_and_check("test");
  return c;
}

const size_t kOptimizers = enum_names(OptimizerKind{}).size();
std::string name_of_kind(size_t kind) { return std::string(enum_names(OptimizerKind{})[kind]); }

double mean(const std::vector<double>& v, size_t from, size_t count) {
  double sum = 0;
  for (size_t i = from; i < from + count; ++i) sum += v[i];
  return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("every optimizer: trains a model", "[training][optim]") {
  for (size_t kind = 0; kind < kOptimizers; ++kind) {
    Made made(with_optimizer(kind));
    const std::vector<double> l = losses(*made.trainer, 100);
    INFO(name_of_kind(kind) << ": " << mean(l, 0, 5) << " -> " << mean(l, 90, 10));
    CHECK(mean(l, 90, 10) < mean(l, 0, 5) - 1);
  }
}

TEST_CASE("every optimizer: planned and replayed steps have the bits of eager ones",
          "[training][optim]") {
  for (size_t kind = 0; kind < kOptimizers; ++kind) {
    std::vector<std::vector<std::vector<float>>> ends;
    for (const StepMode mode : {StepMode::eager, StepMode::replayed}) {
      Made made(with_optimizer(kind, 9));
      made.trainer->set_mode(mode);
      losses(*made.trainer, 9);
      ends.push_back(weights(*made.trainer));
    }
    INFO(name_of_kind(kind));
    CHECK(ends[0] == ends[1]);
  }
}

TEST_CASE("every optimizer: a run goes on from its checkpoint with the same bits",
          "[training][optim][F30]") {
  for (size_t kind = 0; kind < kOptimizers; ++kind) {
    Made whole(with_optimizer(kind, 10));
    losses(*whole.trainer, 10);
    Scratch folder;
    RunDirectory run = new_run(folder);
    {
      Made first(with_optimizer(kind, 10));
      losses(*first.trainer, 5);
      first.trainer->save(run, {});
    }
    Made second(with_optimizer(kind, 10));
    second.trainer->resume(run, {});
    losses(*second.trainer, 10);
    INFO(name_of_kind(kind));
    CHECK(weights(*whole.trainer) == weights(*second.trainer));
  }
}

TEST_CASE("optimizers: a checkpoint of another one is refused by name",
          "[training][optim][error]") {
  Scratch folder;
  RunDirectory run = new_run(folder);
  Made adamw(with_optimizer(0, 10));
  losses(*adamw.trainer, 2);
  adamw.trainer->save(run, {});
  RunConfig c = with_optimizer(0, 10);
  c.train.optimizer = OptimizerKind::muon;
  Made muon(c);
  CHECK_THROWS_WITH(muon.trainer->resume(run, {}),
                    Contains("was trained with another optimizer (adamw; now muon)"));
}

TEST_CASE("batch ramp: passes grow, the data go on where they stopped, breaks change no bit",
          "[training][optim][L82]") {
  RunConfig c = tiny(4);
  c.train.accumulation_start = 1;
  c.train.ramp_steps = 6;
  c.train.steps = 8;
  c.resolve_and_check("ramp");
  Made whole(c);
  std::vector<int64_t> tokens;
  while (whole.trainer->steps_done() < 8) tokens.push_back(whole.trainer->step().tokens);
  const int64_t pass = 2 * 8;  // sequences, tokens
  CHECK(tokens == std::vector<int64_t>{1 * pass, 2 * pass, 4 * pass, 6 * pass, 9 * pass, 12 * pass,
                                       16 * pass, 20 * pass});
  Scratch folder;
  RunDirectory run = new_run(folder);
  {
    Made first(c);
    losses(*first.trainer, 3);
    first.trainer->save(run, {});
  }
  Made second(c);
  second.trainer->resume(run, {});
  losses(*second.trainer, 8);
  CHECK(weights(*whole.trainer) == weights(*second.trainer));
}
