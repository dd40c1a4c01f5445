// Training: resuming, threads, micro-batches, bad numbers, and the run directory.
#include <catch2/catch.hpp>
#include <cstring>

#include "core/parallel.h"
#include "data/file.h"
#include "tests/training_helpers.h"

using namespace tally;
using namespace tally::test;

TEST_CASE("training: a run that is broken off goes on bit for bit, at one break and at two",
          "[training][F30][F46]") {
  for (int64_t accumulation : {1, 3}) {
    const RunConfig c = small(accumulation);
    Made whole(c);
    const auto want = losses(*whole.trainer, 12);
    CHECK(want.back() < want.front());
    for (const std::vector<int64_t>& breaks : {std::vector<int64_t>{5}, {2, 7}, {1, 2, 11}}) {
      Scratch run_folder;
      RunDirectory run = new_run(run_folder);
      std::vector<double> got;
      bool first = true;
      for (int64_t until : [&] {
             auto b = breaks;
             b.push_back(12);
             return b;
           }()) {
        Made part(c);
        if (!first) part.trainer->resume(run, {{"data", "x"}});
        first = false;
        for (double l : losses(*part.trainer, until)) got.push_back(l);
        part.trainer->save(run, {{"data", "x"}});
        if (until == 12) CHECK(weights(*part.trainer) == weights(*whole.trainer));
      }
      CHECK(got == want);
    }
  }
}

TEST_CASE("training: the same bits for 1, 2, 3 and 4 threads, and when run again",
          "[training][threads][F48]") {
  const int before = num_threads();
  std::vector<std::vector<double>> all;
  std::vector<std::vector<std::vector<float>>> gradients, trained;
  for (int n : {1, 2, 3, 4, 4}) {
    set_num_threads(n);
    Made m(small());
    nn::Decoder& model = m.trainer->decoder();
    std::vector<int64_t> ids(4 * 32), targets(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i % 251);
    std::rotate_copy(ids.begin(), ids.begin() + 1, ids.end(), targets.begin());
    Generator dropout(3);
    {
      Tape tape;
      tape.backward(model.loss(from_host<int64_t>(ids, {4, 32}, kCPU),
                               from_host<int64_t>(targets, {4, 32}, kCPU), 0, &dropout));
    }
    gradients.emplace_back();
    for (auto& [name, w] : model.named_parameters()) {
      gradients.back().push_back(to_host<float>(w.grad()));
      w.set_grad({});
    }
    all.push_back(losses(*m.trainer, 20));
    all.back().push_back(m.trainer->evaluate().loss);
    trained.push_back(weights(*m.trainer));
  }
  set_num_threads(before);
  for (size_t i = 1; i < all.size(); ++i) {
    CHECK(gradients[i] == gradients[0]);
    CHECK(all[i] == all[0]);
    CHECK(trained[i] == trained[0]);
  }
}

TEST_CASE("training: micro-batches give the mean over all tokens", "[training][F09]") {
  RunConfig one = small(1), four = small(4);
  one.model.residual_dropout = one.model.attention_dropout = four.model.residual_dropout =
      four.model.attention_dropout = 0;
  one.train.batch = 8;
  four.train.batch = 2;
  Made a(one), b(four);
  const StepResult x = a.trainer->step(), y = b.trainer->step();
  CHECK(x.loss == Approx(y.loss).epsilon(1e-6));
  CHECK(x.grad_norm == Approx(y.grad_norm).epsilon(1e-5));
  CHECK(x.tokens == y.tokens);
}

TEST_CASE("training: a NaN or an infinity stops before the update and is named",
          "[training][error][F33][F47]") {
  const char* const damaged = GENERATE("blocks.0.mlp.down.weight", "embedding.weight");
  const float value = GENERATE(NAN, INFINITY);
  Scratch run_folder;
  RunDirectory run = new_run(run_folder);
  Made m(small());
  losses(*m.trainer, 2);
  m.trainer->save(run, {});
  for (auto& [name, t] : m.trainer->model().named_parameters()) {
    if (name == damaged) std::fill_n(t.host<float>().begin() + 32 * 64, 64 * 64, value);
  }
  const auto before = weights(*m.trainer);
  CHECK_THROWS_WITH(
      m.trainer->step(),
      Catch::Contains("step 3") && Catch::Contains("first bad weight is " + std::string(damaged)));
  const auto after = weights(*m.trainer);
  for (size_t i = 0; i < before.size(); ++i)
    CHECK(std::memcmp(before[i].data(), after[i].data(), before[i].size() * sizeof(float)) == 0);
  CHECK(m.trainer->steps_done() == 2);
  CHECK_THROWS_WITH(m.trainer->save(run, {}),
                    Catch::Contains(damaged) && Catch::Contains("last checkpoint is untouched"));
  m.trainer->resume(run, {});  // it is the finite one
  CHECK(std::isfinite(m.trainer->step().loss));
}

TEST_CASE("training: an absurd learning rate ends in an error, and every checkpoint is finite",
          "[training][error][F47]") {
  RunConfig c = small();
  c.train.lr = GENERATE(1e30, 1e38, 1e39);  // the last one is an infinity in f32
  Scratch run_folder;
  RunDirectory run = new_run(run_folder);
  Made m(c);
  const auto train = [&] {
    for (int i = 0; i < 12; ++i) {
      m.trainer->step();
      m.trainer->save(run, {});
    }
  };
  CHECK_THROWS_WITH(
      train(), Catch::Contains("train: step") && Catch::Contains("last checkpoint is untouched"));
  m.trainer->resume(run, {});
  for (const auto& w : weights(*m.trainer))
    CHECK(std::all_of(w.begin(), w.end(), [](float x) { return std::isfinite(x); }));
}

TEST_CASE("training: resuming with other data or another model is refused by name",
          "[training][error]") {
  Scratch run_folder;
  RunDirectory run = new_run(run_folder);
  Made m(small());
  m.trainer->save(run, {{"training data", "one"}});
  CHECK_THROWS_WITH(m.trainer->resume(run, {{"training data", "two"}}),
                    Catch::Contains("another training data"));
  RunConfig other = small();
  other.model.d_ff = 64;
  Made n(other);
  CHECK_THROWS_WITH(n.trainer->resume(run, {{"training data", "one"}}),
                    Catch::Contains("stored as"));
}

TEST_CASE(
    "run directory: keeps the newest two, clears what a killed save left, refuses a used folder",
    "[training][F45]") {
  Scratch run_folder;
  RunDirectory run = new_run(run_folder);
  Made m(small());
  for (int i = 0; i < 3; ++i) {
    m.trainer->step();
    fs::create_directories(run.file("checkpoints/unfinished/rubbish"));
    m.trainer->save(run, {});
  }
  CHECK(run.latest() == run.file("checkpoints/step-3"));
  CHECK_FALSE(fs::exists(run.file("checkpoints/step-1")));
  CHECK(fs::exists(run.file("checkpoints/step-2")));
  CHECK_FALSE(fs::exists(run.file("checkpoints/unfinished")));
  CHECK_THROWS_WITH(RunDirectory::create(run_folder.path), Catch::Contains("holds a run already"));
  CHECK_THROWS_WITH(RunDirectory::open(run_folder.path + "/nothing"),
                    Catch::Contains("no such run directory"));
}

TEST_CASE("run directory: metrics after the checkpoint are dropped on resume", "[training][F46]") {
  Scratch run_folder;
  RunDirectory run = RunDirectory::create(run_folder.path);
  for (int step : {1, 2, 3}) run.append_metrics("{\"step\":" + std::to_string(step) + "}");
  std::ofstream(run.file("metrics.jsonl"), std::ios::app) << "{\"ste";
  run.drop_lines_after(2);
  CHECK(read_file(run.file("metrics.jsonl")) == "{\"step\":1}\n{\"step\":2}\n");
}
