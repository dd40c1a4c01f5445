#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backends/register_all.h"
#include "core/parallel.h"
#include "data/file.h"
#include "models/trainer.h"
#include "models/zoo.h"

using namespace tally;
namespace fs = std::filesystem;

namespace {

struct Registered {
  Registered() { register_all(); }
} const registered;

/// A folder of its own that goes away.
struct Scratch {
  Scratch()
      : path((fs::temp_directory_path() /
              ("tally_training_" + std::to_string(::getpid()) + "_" + std::to_string(++count)))
                 .string()) {}
  ~Scratch() { fs::remove_all(path); }
  std::string path;
  static inline int count = 0;
};

std::string some_text() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "verse " + std::to_string(i * i % 97) + " of the " + std::to_string(i) +
            "th chapter\n" + (i % 5 == 4 ? "\n" : "");
  return text;
}

RunConfig small(int64_t accumulation = 1) {
  RunConfig c = find_preset("llama-smoke").config;
  c.model.layers = 1;
  c.model.residual_dropout = c.model.attention_dropout = 0.1;
  c.model.context = 32;
  c.train.batch = 4;
  c.train.steps = 12;
  c.train.warmup = 2;
  c.train.accumulation = accumulation;
  c.resolve_and_check("small");
  return c;
}

struct Made {
  explicit Made(const RunConfig& c) : tokenizer(Tokenizer::bytes()) {
    fs::create_directories(folder.path);
    std::ofstream(folder.path + "/text.txt") << some_text();
    DataOptions o;
    o.text.val_fraction = 0.1;
    trainer = std::make_unique<Trainer>(c, open_data(folder.path + "/text.txt", tokenizer, o),
                                        tokenizer.byte_lengths(), DType::f32, kCPU);
  }
  Scratch folder;
  Tokenizer tokenizer;
  std::unique_ptr<Trainer> trainer;
};

std::vector<double> losses(Trainer& t, int64_t until) {
  std::vector<double> out;
  while (t.steps_done() < until) out.push_back(t.step().loss);
  return out;
}

std::vector<std::vector<float>> weights(Trainer& t) {
  std::vector<std::vector<float>> out;
  for (auto& [name, w] : t.model().named_parameters()) out.push_back(to_host<float>(w));
  return out;
}

}  // namespace

TEST_CASE("training: a run that is broken off goes on bit for bit, at one break and at two",
          "[training]") {
  for (int64_t accumulation : {1, 3}) {
    const RunConfig c = small(accumulation);
    Made whole(c);
    const auto want = losses(*whole.trainer, 12);
    CHECK(want.back() < want.front());
    for (const std::vector<int64_t>& breaks : {std::vector<int64_t>{5}, {2, 7}, {1, 2, 11}}) {
      Scratch run_folder;
      RunDirectory run = RunDirectory::create(run_folder.path);
      std::ofstream(run.file("config.json")) << "{}";
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

TEST_CASE("training: the same bits for 1, 2, 3 and 4 threads", "[training][threads]") {
  const int before = num_threads();
  std::vector<std::vector<double>> all;
  for (int n : {1, 2, 3, 4}) {
    set_num_threads(n);
    Made m(small());
    all.push_back(losses(*m.trainer, 6));
    all.back().push_back(m.trainer->evaluate().loss);
  }
  set_num_threads(before);
  for (const auto& l : all) CHECK(l == all[0]);
}

TEST_CASE("training: micro-batches give the mean over all tokens", "[training]") {
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

TEST_CASE("training: a NaN stops before the update and is named", "[training][error]") {
  Made m(small());
  losses(*m.trainer, 2);
  auto parameters = m.trainer->model().named_parameters();
  for (auto& [name, t] : parameters) {
    if (name == "blocks.0.mlp.down.weight") t.host<float>()[3] = NAN;
  }
  const auto before = weights(*m.trainer);
  CHECK_THROWS_WITH(
      m.trainer->step(),
      Catch::Contains("step 3") && Catch::Contains("first bad weight is blocks.0.mlp.down.weight"));
  const auto after = weights(*m.trainer);
  for (size_t i = 0; i < before.size(); ++i)
    CHECK(std::memcmp(before[i].data(), after[i].data(), before[i].size() * sizeof(float)) == 0);
  CHECK(m.trainer->steps_done() == 2);
}

TEST_CASE("training: resuming with other data or another model is refused by name",
          "[training][error]") {
  Scratch run_folder;
  RunDirectory run = RunDirectory::create(run_folder.path);
  std::ofstream(run.file("config.json")) << "{}";
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
    "[training]") {
  Scratch run_folder;
  RunDirectory run = RunDirectory::create(run_folder.path);
  std::ofstream(run.file("config.json")) << "{}";
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

TEST_CASE("run directory: metrics after the checkpoint are dropped on resume", "[training]") {
  Scratch run_folder;
  RunDirectory run = RunDirectory::create(run_folder.path);
  for (int step : {1, 2, 3}) run.append_metrics("{\"step\":" + std::to_string(step) + "}");
  std::ofstream(run.file("metrics.jsonl"), std::ios::app) << "{\"ste";
  run.drop_lines_after(2);
  CHECK(read_file(run.file("metrics.jsonl")) == "{\"step\":1}\n{\"step\":2}\n");
}
