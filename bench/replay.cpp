// One training step in its modes, interleaved in one run: eager (every tensor asks the pool),
// planned (one arena), replayed (recorded calls alone), and eager with a ledger open or with every
// probe on. Compares the losses bit for bit, then prints time, memory, page faults and allocations. Ratios are of CPU time, which other programs on
// the machine disturb less than wall time.
// usage: replay MODEL [--batch N] [--recompute LAYERS] [--rounds N] [--threads N]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/register_all.h"
#include "core/error.h"
#include "core/host_backend.h"
#include "core/ledger.h"
#include "core/parallel.h"
#include "models/build.h"
#include "models/probes.h"
#include "models/recompute.h"
#include "models/training_step.h"
#include "models/zoo.h"
#include "optim/adamw.h"

namespace tally {
namespace {

enum class Observer : uint8_t { none, ledger, probes };

struct Kind {
  const char* name;
  StepMode mode;
  Observer observer = Observer::none;
};
constexpr std::array<Kind, 5> kKinds = {{{"eager", StepMode::eager},
                                         {"planned", StepMode::planned},
                                         {"replayed", StepMode::replayed},
                                         {"eager, ledger", StepMode::eager, Observer::ledger},
                                         {"eager, probes", StepMode::eager, Observer::probes}}};

HostBackend& host() { return dynamic_cast<HostBackend&>(backend(kCPU)); }

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// A model in training on made-up tokens, in one mode.
class Side {
 public:
  Side(const RunConfig& c, const Kind& kind)
      : observer_(kind.observer),
        vocab_(c.model.vocab),
        model_(build_model(c.model, DType::f32, kCPU)) {
    initialise(*model_, c.model, 1);
    model_->recompute = recompute_layers(c.train.recompute, c.model.layers);
    const auto adamw = [](nn::Module& m) {
      return std::make_unique<optim::AdamW>(optim::decay_groups(m, 0.1), optim::AdamW::Options{});
    };
    const int64_t seq = c.train.seq ? c.train.seq : c.model.context;
    step_ = std::make_unique<TrainingStep>(
        *model_, adamw, StepOptions{c.train.batch, seq, c.train.accumulation, 1}, generator_);
    step_->set_mode(kind.mode);
    const size_t before = host().system().bytes - host().cached_bytes();
    host().trim();
    losses_.push_back(observed());  // plans, records, touches its pages
    losses_.push_back(observed());
    const size_t held = host().system().bytes;
    memory_ = static_cast<double>(held - before);
  }

  void timed() {
    const int64_t faults = page_faults();
    host().reset_peak();
    const double start = cpu_seconds();
    losses_.push_back(observed());
    seconds.push_back(cpu_seconds() - start);
    fewest_faults = std::min(fewest_faults, page_faults() - faults);
    allocations = host().memory().allocations;
  }
  const std::vector<double>& losses() const { return losses_; }
  const TrainingStep& training_step() const { return *step_; }
  double memory() const { return memory_; }

  std::vector<double> seconds;
  int64_t fewest_faults = std::numeric_limits<int64_t>::max();
  size_t allocations = 0;

 private:
  double observed() {
    std::optional<Ledger> ledger;
    std::optional<Probes> probes;
    if (observer_ == Observer::ledger) ledger.emplace();
    if (observer_ == Observer::probes) {
      const auto names = probe_names();
      probes.emplace(std::vector<std::string>(names.begin(), names.end()),
                     step_->optimizer().groups());
    }
    return step();
  }
  double step() {
    const auto t = static_cast<uint64_t>(step_->optimizer().steps());
    const auto r = step_->gradients([&](int64_t micro, const BatchSpans& to) {
      for (size_t i = 0; i < to.ids.size(); ++i) {
        const uint64_t stream = t * 1000 + static_cast<uint64_t>(micro);
        to.ids[i] = Philox::word(1, stream, i) % static_cast<uint64_t>(vocab_);
        to.targets[i] = Philox::word(2, stream, i) % static_cast<uint64_t>(vocab_);
      }
    });
    step_->update(3e-4);
    return r.loss;
  }

  Observer observer_;
  int64_t vocab_;
  std::unique_ptr<nn::Decoder> model_;
  Generator generator_{7};
  std::unique_ptr<TrainingStep> step_;
  std::vector<double> losses_;
  double memory_ = 0;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void report(std::vector<std::unique_ptr<Side>>& sides) {
  const auto& plan = sides[2]->training_step().arena()->plan();
  std::cout << fmt::format(
      "live peak of a step {:.1f} MB, arena {:.1f} MB, {} allocations planned, "
      "{} calls recorded\n",
      1e-6 * double(plan.live_peak), 1e-6 * double(plan.arena_bytes), plan.blocks.size(),
      sides[2]->training_step().recorded_calls());
  std::cout << "| mode | CPU time of a step, median | speed against eager, median (spread) | "
               "memory of a step | "
               "allocations | page faults |\n| --- | --- | --- | --- | --- | --- |\n";
  for (size_t k = 0; k < sides.size(); ++k) {
    std::vector<double> ratios;
    for (size_t i = 0; i < sides[k]->seconds.size(); ++i)
      ratios.push_back(sides[0]->seconds[i] / sides[k]->seconds[i]);
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    std::cout << fmt::format(
        "| {} | {:.2f} ms | {:.3f} ({:.2f} to {:.2f}) | {:.1f} MB, {:.2f} | {} | {} |\n",
        kKinds[k].name, 1e3 * median(sides[k]->seconds), median(ratios), *low, *high,
        1e-6 * sides[k]->memory(), sides[k]->memory() / sides[0]->memory(), sides[k]->allocations,
        sides[k]->fewest_faults);
  }
}

void compare(const std::vector<std::string>& arguments) {
  check(!arguments.empty() && arguments.size() % 2 == 1,
        "usage: replay MODEL [--batch N] [--recompute LAYERS] [--rounds N] [--threads N]");
  std::map<std::string, std::string> options = {
      {"--batch", ""}, {"--recompute", "none"}, {"--rounds", "11"}, {"--threads", ""}};
  for (size_t i = 1; i < arguments.size(); i += 2) {
    check(options.contains(arguments[i]), "replay: unknown option ", arguments[i]);
    options[arguments[i]] = arguments[i + 1];
  }
  register_all();
  if (!options["--threads"].empty()) set_num_threads(std::stoi(options["--threads"]));
  RunConfig config = find_preset(arguments[0]).config;
  config.resolve_and_check(arguments[0]);
  if (!options["--batch"].empty()) config.train.batch = std::stoll(options["--batch"]);
  config.train.recompute = options["--recompute"];
  std::vector<std::unique_ptr<Side>> sides;
  for (const Kind& kind : kKinds) sides.push_back(std::make_unique<Side>(config, kind));
  const int rounds = std::stoi(options["--rounds"]);
  for (int round = 0; round < rounds; ++round) {  // A B C D E E D C B A
    const size_t n = sides.size();
    for (size_t k = 0; k < n; ++k) sides[round % 2 ? n - 1 - k : k]->timed();
  }
  for (const auto& side : sides)
    check(side->losses() == sides[0]->losses(), "replay: the modes differ in their losses");
  std::cout << fmt::format("{}, batch {}: the losses of {} steps are equal bit for bit\n",
                           arguments[0], config.train.batch, rounds + 2);
  report(sides);
}

}  // namespace
}  // namespace tally

int main(int argc, char** argv) {
  try {
    tally::compare({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
