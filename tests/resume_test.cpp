// Breaks and kills: what is on disk is whole, and a run that goes on from it is the unbroken one.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>

#include "core/parallel.h"
#include "data/file.h"
#include "tests/saved_state.h"

using namespace tally;
using namespace tally::test;

namespace {

/// The pool's threads do not survive fork(); one thread needs none of them.
struct OneThread {
  OneThread() : former(num_threads()) { set_num_threads(1); }
  ~OneThread() { set_num_threads(former); }
  int former;
};

/// A process of its own that runs `act`, which never returns, until it is killed.
class Child {
 public:
  template <class F>
  explicit Child(const F& act) : pid_(fork()) {
    if (pid_ == 0) {
      try {
        act();
      } catch (const std::exception&) {
      }
      _exit(1);
    }
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void stop() const {
    kill(pid_, SIGSTOP);
    int status = 0;
    REQUIRE(waitpid(pid_, &status, WUNTRACED) == pid_);
    REQUIRE(WIFSTOPPED(status));  // it was still at work
  }
  void go_on() const { kill(pid_, SIGCONT); }

 private:
  pid_t pid_;
};

struct Moments {
  unsigned state = 1;
  unsigned next(unsigned least, unsigned range) {
    state = state * 1103515245u + 12345u;
    return least + (state >> 16) % range;
  }
};

std::string bytes_of(const RunDirectory& run, const char* file) {
  return read_file(run.latest() + "/" + file);
}

}  // namespace

namespace {

// A process that saves all the time is killed, so often, at moments of which it was stopped `stops`
// times before to look at what a kill there would leave. Another step each time, as training does,
// or the same one: a run that ends or is interrupted just after a checkpoint saves it a second time.
void kill_while_saving(bool same_step, int64_t all_kills, int stops) {
  register_all();
  const OneThread one;
  Scratch folder;
  RunDirectory run = new_run(folder);
  const auto save = [&](int64_t n) {
    const State s(static_cast<float>(n));
    run.save({same_step ? 1 : n, {{"value", std::to_string(n)}}}, s.model, s.optimizer);
  };
  save(1);
  Moments moments;
  for (int64_t kills = 0, newest = 1; kills < all_kills; ++kills) {
    const Child child([&] {
      for (int64_t n = newest + 1;; ++n) save(n);
    });
    for (int i = 0; i < stops; ++i) {
      usleep(moments.next(50, 2500));
      child.stop();
      const int64_t found = check_newest(run);
      REQUIRE(found >= newest);
      newest = found;
      if (i + 1 < stops) child.go_on();
    }
  }  // killed
  check_newest(run);
  save(1000000);
  CHECK(strays(run) == 0);
  CHECK(check_newest(run) == 1000000);
}

}  // namespace

TEST_CASE("run directory: kill -9 while saving leaves a whole checkpoint, and no strays for long",
          "[training][F45]") {
  kill_while_saving(GENERATE(false, true), 12, 20);
}

// tests/long.sh kill
TEST_CASE("run directory: two hundred kills while saving", "[kills][!hide]") {
  kill_while_saving(GENERATE(false, true), 200, 1);
}

TEST_CASE("training: 100 steps are the same in one go, as 40 + 60 and as 13 + 29 + 58",
          "[training][F46]") {
  // 200 or 600 windows, about 150 an epoch: the breaks lie inside of epochs.
  const int64_t accumulation = GENERATE(1, 3);
  const RunConfig c = tiny(accumulation);
  Made whole(c, 50);
  Scratch whole_folder;
  RunDirectory whole_run = new_run(whole_folder);
  const auto want = losses(*whole.trainer, 100);
  whole.trainer->save(whole_run, {});
  CHECK(want.back() < want.front());
  for (const std::vector<int64_t>& ends : {std::vector<int64_t>{40, 100}, {13, 42, 100}}) {
    Scratch folder;
    RunDirectory run = new_run(folder);
    std::vector<double> got;
    for (int64_t until : ends) {
      Made part(c, 50);
      if (!got.empty()) part.trainer->resume(run, {});
      for (double loss : losses(*part.trainer, until)) got.push_back(loss);
      part.trainer->save(run, {});
    }
    CHECK(got == want);  // to the bit, so the windows are the same too
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"})
      CHECK(bytes_of(run, file) == bytes_of(whole_run, file));
  }
}

TEST_CASE("training: killed at any moment it goes on as if nothing had happened",
          "[training][F45][F46]") {
  register_all();
  const OneThread one;
  RunConfig c = tiny(4);  // three of four moments lie between the micro-batches of a step
  c.train.steps = 60;
  const auto start = std::chrono::steady_clock::now();
  Made whole(c, 50);
  losses(*whole.trainer, 60);
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  Scratch folder;
  RunDirectory run = new_run(folder);
  const auto line = [](int64_t step) { return "{\"step\":" + std::to_string(step) + "}"; };
  const auto train = [&](Trainer& t) {
    while (t.steps_done() < 60) {
      run.append_metrics(line(t.step().step));
      if (t.steps_done() % 3 == 0) t.save(run, {});
    }
  };
  Moments moments;
  for (int kills = 0; kills <= 12; ++kills) {
    Made part(c, 50);
    if (kills > 0) part.trainer->resume(run, {});
    if (kills == 0) part.trainer->save(run, {});
    run.drop_lines_after(part.trainer->steps_done());
    if (kills < 12) {
      const Child child([&] {
        train(*part.trainer);
        for (;;) pause();
      });
      usleep(moments.next(0, static_cast<unsigned>(spent.count() / 6) + 1));
      continue;  // killed
    }
    train(*part.trainer);
    CHECK(weights(*part.trainer) == weights(*whole.trainer));
  }
  std::string lines;
  for (int64_t step = 1; step <= 60; ++step) lines += line(step) + "\n";
  CHECK(read_file(run.file("metrics.jsonl")) == lines);
}
